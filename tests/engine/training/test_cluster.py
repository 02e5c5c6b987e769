"""Tests of a run on a real Ray cluster of two nodes on this machine, and of killed processes.

When a process or a node is killed, each wait ends with a verdict or a first cause. The tests share
the cluster; the last one takes a node from it.
"""

import os
import random
import re
import signal
import threading

import psutil
import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group_table

from engine.config.compute import ComputeConfig
from engine.events.vocabulary import Verdict
from engine.policy.types import Request
from engine.preload.environment import runtime_environment
from engine.problems.generator import make_problem
from engine.rollout.generation_dispatcher import GenerationDispatcher
from engine.rollout.scheduler import Demand, Task
from engine.rollout.verification import VerifierPool
from engine.run.waits import TeamError, wait_for, wait_for_any
from engine.training.cluster import connect, reserve
from engine.training.seats import Bundle
from engine.training.team import Team
from tests.engine.rollout.scheduling import scheduling_errors
from tests.engine.training.test_overlap import payloads, settings, train
from tests.helpers.clusters import BARE
from tests.helpers.policies import tiny_config
from tests.helpers.waiting import eventually, patience
from workers.processes import has_ended

pytestmark = pytest.mark.slow
PROBLEM = make_problem(2, 1)[0]
QUICK = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
"""Ray's settings: a node that misses this many checks is dead (half a minute by default)."""


def unheard(name, deadline):
    pass


def read_variable(name):
    return os.environ.get(name)


def written(count):
    """`count` right programs, none of them verified before."""
    return [(PROBLEM, f"{PROBLEM.reference}\n# {random.random()}") for _ in range(count)]


@pytest.fixture(scope="module")
def cluster(ray_folder):
    """Two nodes of one core each."""
    made = Cluster()
    made.add_node(num_cpus=1, _system_config=QUICK, **BARE)
    made.add_node(num_cpus=1, **BARE)
    made.wait_for_nodes()
    yield made
    made.shutdown()


@pytest.fixture
def joined(cluster):
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()


@pytest.mark.large
def test_deadlines_reach_the_actors_of_a_cluster_that_has_others(cluster, monkeypatch):
    monkeypatch.setenv("GROVE_CALL_SECONDS", "3601")
    config = tiny_config("starter:oak", compute={"ray_address": cluster.address})
    disconnect = connect(config, unheard)
    try:
        forked = runtime_environment(config.compute)
        assert "launcher" in str(forked)
        for options in ({}, {"runtime_env": forked}):
            of_actor = ray.remote(read_variable).options(num_cpus=0, **options)
            assert ray.get(of_actor.remote("GROVE_CALL_SECONDS"), timeout=100) == "3601"
    finally:
        disconnect()


@ray.remote(num_cpus=0)
class Held:
    def hold(self):
        threading.Event().wait()


@pytest.mark.large
def test_a_call_that_does_not_end_in_time_names_the_setting(joined, monkeypatch):
    monkeypatch.setenv("GROVE_CALL_SECONDS", "0.25")
    held = Held.remote()
    call = held.hold.remote()
    late = "waited 0.25 s for it to end; on a busy machine raise GROVE_CALL_SECONDS or GROVE_PATI"
    try:
        for wait in (wait_for, lambda call, *rest: wait_for_any([call], *rest)):
            with pytest.raises(TeamError, match=re.escape(late)):
                wait(call, "it to end", unheard)
    finally:
        ray.kill(held)


@pytest.mark.large
def test_trees_that_a_step_did_not_wait_for_go_on_over_steps_and_resumes(cluster, tmp_path):
    """A learner and a generator on two nodes of one core: neither could hold both."""
    compute = {"generators_per_agent": 1, "strategy": "SPREAD", "lanes": 5}
    plan = {"steps": 3, "extra_trees": 4, "checkpoint_every": 3, "trees_per_step": 6}
    run_dir = tmp_path / "run"
    before = train(run_dir, settings(compute, **plan), cluster.address)
    config = settings(compute, **plan | {"steps": 6})
    events = train(run_dir, config, cluster.address)

    steps = {e["step"]: e for e in payloads(events, "step.end")}
    assert list(steps) == [1, 2, 3, 4, 5, 6]
    assert [resumed["step"] for resumed in payloads(events, "run.resumed")] == [3]
    # (`test_scheduling` has schedulers that violate these bounds.)
    assert scheduling_errors(events, config.training) == []
    assert sum(step["carried_trees"] > 0 for step in steps.values()) >= 4
    problems = {e.tree: e.payload["problem"] for e in events if e.kind == "tree.open"}
    opened_in = {e.tree: e.payload["step"] for e in events if e.kind == "tree.open"}
    closed = [e.tree for e in events if e.kind == "tree.close"]
    assert len(set(closed)) == len(closed) >= 6 * 6
    assert sum(e.payload["nodes"] for e in events if e.kind == "tree.close") == sum(
        step["nodes"] for step in steps.values()
    )
    # Trees in flight when the first part ended are restarted, not lost.
    last = max(e.seq for e in before)
    cut = {problems[tree] for tree in opened_in if tree <= last and tree not in closed}
    assert len(cut) == steps[3]["carried_trees"]
    assert cut <= {problems[tree] for tree in closed if tree > last}
    # Trees that a step did not wait for close after it and report the weights that generated them.
    ended = {e.payload["step"]: e.seq for e in events if e.kind == "step.end"}
    late = {e.tree for e in events if e.kind == "tree.close" and e.seq > ended[opened_in[e.tree]]}
    # (A tree that a checkpoint left open is restarted as a tree of the next step.)
    assert late and {opened_in[tree] for tree in late} <= {1, 2, 4, 5}
    # A step is generated by weights of two steps ago, or of the last one after a checkpoint.
    nodes = [e for e in events if e.kind == "node.close"]
    assert all(opened_in[e.tree] - 2 <= e.payload["policy_version"] < 6 for e in nodes)
    # Nodes older than the bound are not learned from; all other whole trees are.
    updates = payloads(events, "agent.update")
    for update in updates:
        learner = update["version"] - 1
        written = [e.payload["policy_version"] for e in nodes if e.tree in update["trees"]]
        assert sum(learner - version <= 1 for version in written) == update["nodes"]
        assert update["lag"] <= 1
    stale = sum(update["stale_nodes"] for update in updates)
    learned = sum(update["nodes"] for update in updates)
    assert stale + learned == sum(step["nodes"] for step in steps.values())
    walls = [p["message"] for p in payloads(events, "log.line") if "walls" in p["message"]]
    assert len(walls) == 2


@pytest.mark.large
def test_a_node_that_is_lost_costs_no_verdict(joined):
    config = tiny_config(
        *["starter:oak"], sandbox={"workers": 1, "cpu_seconds": 20, "wall_seconds": 60}
    )
    pool = VerifierPool(config, {}, unheard)
    pool.ready()
    assert (
        len({place.node for place in pool.verifiers}) == 1
    )  # one machine: the ids distinguish them
    assert [place.slots for place in pool.verifiers] == [1, 1]
    wrong = "def solve(*arguments):\n    return None\n"
    programs = [
        (PROBLEM, f"{PROBLEM.reference if i % 3 else wrong}\n# {random.random()}")
        for i in range(60)
    ]
    expected = [Verdict.PASSED if i % 3 else Verdict.WRONG_ANSWER for i in range(60)]
    assert [v.verdict for v in pool.verify(programs)] == expected

    ray.kill(pool.verifiers[0].actor)
    programs = [(PROBLEM, f"{text}\n# {random.random()}") for _, text in programs]
    assert [v.verdict for v in pool.verify(programs)] == expected
    assert len(pool.verifiers) == 1 and "verifies no more" in pool.lost[0]
    ray.kill(pool.verifiers[0].actor)
    with pytest.raises(TeamError, match="sandbox"):
        pool.verify(written(1))


@pytest.mark.large
def test_resources_held_by_others_are_awaited_until_a_deadline(joined):
    compute = ComputeConfig(placement_seconds=1.0)
    held = reserve([Bundle("theirs", 1, {"CPU": 1.0})] * 2, ComputeConfig(), unheard)
    results = []
    with pytest.raises(TeamError, match=r"waited 1 s for the placement of 1 bundles.*0 cores"):
        reserve([Bundle("ours", 1, {"CPU": 1.0})], compute, lambda *wait: results.append(wait))
    assert results == [("placement of 1 bundles (PACK)", 1.0), ("", 0.0)]
    ray.util.remove_placement_group(held)
    with pytest.raises(TeamError, match="`ours` needs 4 cores, 0 GPUs"):
        reserve([Bundle("ours", 1, {"CPU": 4.0})], compute, unheard)


@pytest.mark.large
def test_a_node_that_joins_later_verifies_too(joined):
    pool = VerifierPool(tiny_config("starter:oak"), {}, unheard)
    pool.ready()
    before = len(pool.verifiers)
    pool.renew()
    assert len(pool.verifiers) == before
    node = joined.add_node(num_cpus=2, **BARE)
    joined.wait_for_nodes()
    eventually(lambda: pool.renew() or len(pool.verifiers) == before + 1, "a third verifier")
    assert pool.verifiers[-1].slots == 2
    assert {v.verdict for v in pool.verify(written(60))} == {Verdict.PASSED} and not pool.lost
    joined.remove_node(node)


def in_actor(actor, function):
    """Runs a function in the actor. It must be a lambda: a named function of this module would be
    imported there, with torch."""
    return ray.get(actor.__ray_call__.remote(function), timeout=60 * patience())


def node_of(actor):
    return in_actor(actor, lambda self: ray.get_runtime_context().get_node_id())


def kill(actor):
    os.kill(in_actor(actor, lambda self: os.getpid()), signal.SIGKILL)


def parent_of(actor):
    """The process that forked an actor with a model, on the actor's node."""
    return psutil.Process(in_actor(actor, lambda self: os.getppid()))


def failure_of(call):
    """The error message of a call; workers may outlive their node's raylet for a moment."""
    try:
        call()
    except TeamError as error:
        return str(error)
    return ""


def write(team):
    writing = GenerationDispatcher(team)
    writing.submit(0, Task("oak", Request(PROBLEM)))
    writing.send(Demand())
    while not (answers := writing.take(wait_for_any(writing.calls, "agents to write", unheard))):
        writing.send(Demand())
    return answers


@pytest.mark.large
def test_a_killed_process_or_node_is_named_or_does_without(cluster):
    """One team loses a verifier, a node with an agent on it, and its last agent."""
    compute = {"generators_per_agent": 1, "strategy": "STRICT_SPREAD"}
    team = Team(settings(compute | {"ray_address": cluster.address}), unheard)
    try:
        team.ready()
        (answer,) = write(team).values()
        assert answer.generation.output_ids

        places = {node_of(place.actor): place for place in team.verifier.verifiers}
        here = places[cluster.head_node.node_id]
        kill(here.actor)
        assert {v.verdict for v in team.verifier.verify(written(40))} == {Verdict.PASSED}
        (reason,) = team.verifier.lost
        assert "verifies no more: sandbox of node" in reason and "ActorDiedError" in reason

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
        reason = eventually(lambda: failure_of(lose[roles[0]]), "the loss of a node to be reported")
        assert re.search(rf"{roles[0]} is lost: Actor(Died|Unavailable)Error", reason)
        eventually(lambda: has_ended(server), "the node's forks to lose their server")
        with pytest.raises(TeamError, match=r"sandbox of node .*: Actor(Died|Unavailable)Error"):
            team.verifier.verify(written(1))

        actor = team.agents["oak"] if roles[1].startswith("learner") else team.generators["oak"][0]
        kill(actor)
        with pytest.raises(TeamError, match=rf"{roles[1]} is lost: Actor(Died|Unavailable)Error"):
            lose[roles[1]]()
    finally:
        team.close()
