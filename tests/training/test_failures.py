"""Whatever of a run's processes is killed, what follows is a verdict or a first cause, no wait."""

import os
import re
import signal

import psutil
import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group_table

from engine.events import Verdict
from engine.policy.exchange import Request
from engine.problems.generator import make_problem
from engine.training.cluster import RAY_SETTINGS
from engine.training.team import Team
from engine.training.waits import TeamError, wait_for_any
from engine.training.writing import Writing
from tests.clusters import BARE
from tests.training.test_overlap import settings
from tests.waiting import eventually
from workers.processes import is_gone

pytestmark = pytest.mark.slow
PROBLEM = make_problem(2, 1)[0]
PROGRAMS = [(PROBLEM, f"{PROBLEM.reference}\n# {number}") for number in range(40)]
QUICK = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
"""Of Ray: a node that does not answer so often is dead (half a minute by default)."""


@pytest.fixture
def cluster():
    """Two nodes of one core each."""
    os.environ |= RAY_SETTINGS
    made = Cluster()
    made.add_node(num_cpus=1, _system_config=QUICK, **BARE)
    made.add_node(num_cpus=1, **BARE)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def unheard(name, deadline):
    pass


def in_actor(actor, function):
    return ray.get(actor.__ray_call__.remote(function), timeout=60)


def node_of(actor):
    return ray.get_runtime_context().get_node_id()


def kill(actor):
    os.kill(in_actor(actor, lambda self: os.getpid()), signal.SIGKILL)


def parent_of(actor):
    """The process that forked an actor with a model: one of its node."""
    return psutil.Process(in_actor(actor, lambda self: os.getppid()))


def failure_of(call):
    """What a call says of a loss; workers may outlive their node's raylet for a moment."""
    try:
        call()
    except TeamError as error:
        return str(error)
    return ""


def write(team):
    writing = Writing(team)
    writing.ask("oak", Request(PROBLEM))
    writing.send()
    while not (found := writing.taken(wait_for_any(writing.turns, "agents to write", unheard))):
        pass
    return found


def test_a_killed_process_or_node_is_named_or_does_without(cluster):
    """One team loses a verifier, a node with an agent on it, and its last agent."""
    compute = {"generators_per_agent": 1, "strategy": "STRICT_SPREAD"}
    team = Team(settings(compute | {"ray_address": cluster.address}), unheard)
    try:
        team.ready()
        (answer,) = write(team).values()
        assert answer.generation.output_ids

        places = {in_actor(place.actor, node_of): place for place in team.verifier.places}
        here = places[cluster.head_node.node_id]
        kill(here.actor)
        assert {v.verdict for v in team.verifier.verify(PROGRAMS)} == {Verdict.PASSED}
        (told,) = team.verifier.lost
        assert "verifies no more: sandbox of node" in told and "ActorDiedError" in told

        nodes = placement_group_table(team._placed)["bundles_to_node_id"]
        (other,) = cluster.worker_nodes
        lose = {
            "learner of oak": lambda: team.get(
                team.agents["oak"].sizes.remote(), "agents to learn"
            ),
            "generator 0 of oak": lambda: write(team),
        }
        roles = sorted(lose, key=lambda r: nodes[list(lose).index(r)] != other.node_id)
        forked = [team.agents["oak"], *team.generators["oak"]][list(lose).index(roles[0])]
        server = parent_of(forked)
        assert "preload" in " ".join(server.cmdline())
        cluster.remove_node(other, allow_graceful=False)
        told = eventually(lambda: failure_of(lose[roles[0]]), "the loss of a node to be told")
        assert re.search(rf"{roles[0]} is lost: Actor(Died|Unavailable)Error", told)
        eventually(lambda: is_gone(server), "the node's forks to lose their server")
        with pytest.raises(TeamError, match=r"sandbox of node .*: Actor(Died|Unavailable)Error"):
            team.verifier.verify([(PROBLEM, PROBLEM.reference)])

        actor = team.agents["oak"] if roles[1].startswith("learner") else team.generators["oak"][0]
        kill(actor)
        with pytest.raises(TeamError, match=rf"{roles[1]} is lost: Actor(Died|Unavailable)Error"):
            lose[roles[1]]()
    finally:
        team.close()
