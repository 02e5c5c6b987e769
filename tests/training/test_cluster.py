"""A run on a real Ray cluster of two nodes, both of them on this machine."""

import os
import random

import pytest
import ray
from ray.cluster_utils import Cluster

from engine.config import ComputeConfig
from engine.events import Verdict
from engine.problems.generator import make_problem
from engine.training.cluster import RAY_SETTINGS, Bundle, misfit, reserve, seats_of
from engine.training.verification import VerifierPool
from engine.training.waits import TeamError
from tests.clusters import BARE
from tests.policies import tiny_config
from tests.training.test_overlap import payloads, settings, train
from tests.waiting import eventually

AGENTS = ("oak", "fern")
slow = pytest.mark.slow


def unheard(name, deadline):
    pass


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one core each."""
    os.environ |= RAY_SETTINGS
    made = Cluster()
    for _ in range(2):
        made.add_node(num_cpus=1, **BARE)
    made.wait_for_nodes()
    yield made
    made.shutdown()


@pytest.fixture
def joined(cluster):
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()


@slow
def test_trees_that_a_step_did_not_wait_for_go_on_over_steps_and_resumes(cluster, tmp_path):
    """A learner and a generator on two nodes of one core: neither could hold both."""
    compute = {"generators_per_agent": 1, "strategy": "SPREAD", "lanes": 5}
    plan = {"steps": 3, "extra_trees": 4, "checkpoint_every": 3, "trees_per_step": 6}
    run_dir = tmp_path / "run"
    before = train(run_dir, settings(compute, **plan), cluster.address)
    events = train(run_dir, settings(compute, **plan | {"steps": 6}), cluster.address)

    steps = {e["step"]: e for e in payloads(events, "step.end")}
    assert list(steps) == [1, 2, 3, 4, 5, 6]
    assert [resumed["step"] for resumed in payloads(events, "run.resumed")] == [3]
    carried = [step["carried_trees"] for step in steps.values()]
    assert max(carried) <= 4
    # (Where the driver is starved, all trees of a step may have ended when it looks.)
    assert sum(count > 0 for count in carried) >= 4
    problems = {e.tree: e.payload["problem"] for e in events if e.kind == "tree.open"}
    opened_in = {e.tree: e.payload["step"] for e in events if e.kind == "tree.open"}
    closed = [e.tree for e in events if e.kind == "tree.close"]
    assert len(set(closed)) == len(closed) >= 6 * 6
    assert sum(e.payload["nodes"] for e in events if e.kind == "tree.close") == sum(
        step["nodes"] for step in steps.values()
    )
    # What was under way when the first part ended is begun again, not lost.
    last = max(e.seq for e in before)
    cut = {problems[tree] for tree in opened_in if tree <= last and tree not in closed}
    assert len(cut) == steps[3]["carried_trees"]
    assert cut <= {problems[tree] for tree in closed if tree > last}
    # What a step did not wait for comes in after it, and tells by which weights it was written.
    ended = {e.payload["step"]: e.seq for e in events if e.kind == "step.end"}
    late = {e.tree for e in events if e.kind == "tree.close" and e.seq > ended[opened_in[e.tree]]}
    # (What a checkpoint left open is begun again, as a tree of the next step.)
    assert late and {opened_in[tree] for tree in late} <= {1, 2, 4, 5}
    # A step is written by weights of two steps ago, or of the last one after a checkpoint.
    nodes = [e for e in events if e.kind == "node.close"]
    assert all(opened_in[e.tree] - 2 <= e.payload["policy_version"] < 6 for e in nodes)
    # Nothing is learned from that is older than the bound, and whatever else is whole is.
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


@slow
def test_a_node_that_is_lost_costs_no_verdict(joined):
    config = tiny_config(
        *["starter:oak"], sandbox={"workers": 1, "cpu_seconds": 20, "wall_seconds": 60}
    )
    pool = VerifierPool(config, {}, unheard)
    pool.ready()
    assert len({place.node for place in pool.places}) == 1  # one machine: told apart by their ids
    assert [place.slots for place in pool.places] == [1, 1]
    problem, program = make_problem(2, 1)[0], make_problem(2, 1)[0].reference
    wrong = "def solve(*arguments):\n    return None\n"
    programs = [(problem, f"{program if i % 3 else wrong}\n# {random.random()}") for i in range(60)]
    expected = [Verdict.PASSED if i % 3 else Verdict.WRONG_ANSWER for i in range(60)]
    assert [v.verdict for v in pool.verify(programs)] == expected

    ray.kill(pool.places[0].actor)
    programs = [(problem, f"{text}\n# {random.random()}") for _, text in programs]
    assert [v.verdict for v in pool.verify(programs)] == expected
    assert len(pool.places) == 1 and "verifies no more" in pool.lost[0]
    ray.kill(pool.places[0].actor)
    with pytest.raises(TeamError, match="sandbox"):
        pool.verify([(problem, f"{program}\n# {random.random()}")])


@slow
def test_what_others_hold_is_waited_for_under_a_deadline(joined):
    compute = ComputeConfig(placement_seconds=1.0)
    held = reserve([Bundle("theirs", 1, {"CPU": 1.0})] * 2, ComputeConfig(), unheard)
    told = []
    with pytest.raises(TeamError, match=r"waited 1 s for the placement of 1 bundles.*0 cores"):
        reserve([Bundle("ours", 1, {"CPU": 1.0})], compute, lambda *wait: told.append(wait))
    assert told == [("placement of 1 bundles (PACK)", 1.0), ("", 0.0)]
    ray.util.remove_placement_group(held)
    with pytest.raises(TeamError, match="`ours` wants 4 cores, 0 GPUs"):
        reserve([Bundle("ours", 1, {"CPU": 4.0})], compute, unheard)


@slow
def test_a_node_that_joins_later_verifies_too(joined):
    problem, program = make_problem(2, 1)[0], make_problem(2, 1)[0].reference
    pool = VerifierPool(tiny_config("starter:oak"), {}, unheard)
    pool.ready()
    before = len(pool.places)
    pool.renew()
    assert len(pool.places) == before
    node = joined.add_node(num_cpus=2)
    joined.wait_for_nodes()
    eventually(lambda: pool.renew() or len(pool.places) == before + 1, "a third verifier", 60)
    assert pool.places[-1].slots == 2
    verdicts = pool.verify([(problem, f"{program}\n# {n}") for n in range(60)])
    assert {v.verdict for v in verdicts} == {Verdict.PASSED} and not pool.lost
    joined.remove_node(node)


def a_run(**compute):
    agents = [{"name": name, "model": f"starter:{name}"} for name in AGENTS]
    return tiny_config(agents=agents, compute=compute)


def test_learners_and_generators_have_bundles_of_their_own_or_share_them():
    apart = seats_of(a_run(generators_per_agent=2, threads_per_agent=4), gpus=16)
    assert [b.name for b in apart.bundles] == [
        "learner of oak", "generator 0 of oak", "generator 1 of oak",
        "learner of fern", "generator 0 of fern", "generator 1 of fern",
    ]  # fmt: skip
    assert all(b.resources == {"CPU": 4.0, "GPU": 1.0} for b in apart.bundles)
    together = seats_of(a_run(generators_per_agent=1, placement="colocated"), gpus=2)
    assert [b.resources for b in together.bundles] == [{"CPU": 2.0, "GPU": 1.0}] * 2
    assert together.learners[1] == together.generators[1][0]
    assert together.learners[1].resources == {"CPU": 1.0, "GPU": 0.5}
    shared = seats_of(a_run(), gpus=1)
    assert [b.resources["GPU"] for b in shared.bundles] == [0.5, 0.5]
    assert all(b.resources == {"CPU": 1.0} for b in seats_of(a_run(device="cpu"), 8).bundles)

    ranked = [{"name": name, "model": f"starter:{name}", "learner_ranks": 2} for name in AGENTS]
    seats = seats_of(tiny_config(agents=ranked), gpus=5)
    assert [(b.name, b.resources["GPU"]) for b in seats.bundles] == [
        ("learner of oak", 0.5), ("rank 0 of oak", 1.0), ("rank 1 of oak", 1.0),
        ("learner of fern", 0.5), ("rank 0 of fern", 1.0), ("rank 1 of fern", 1.0),
    ]  # fmt: skip
    with pytest.raises(TeamError, match="4 GPUs, all of which ranks"):
        seats_of(tiny_config(agents=ranked), gpus=4)


NODE = {"CPU": 8.0, "GPU": 2.0}
GPU_BUNDLE = Bundle("learner of oak", 1, {"CPU": 2.0, "GPU": 1.0})


@pytest.mark.parametrize(
    ("bundles", "nodes", "strategy", "told"),
    [
        ([GPU_BUNDLE] * 4, [NODE, NODE], "PACK", ""),
        ([GPU_BUNDLE] * 5, [NODE, NODE], "PACK", "no node has left"),
        ([GPU_BUNDLE] * 2, [NODE], "STRICT_SPREAD", "1 nodes have: 8 cores, 2 GPUs"),
        ([GPU_BUNDLE] * 4, [NODE, NODE], "STRICT_PACK", "`all bundles together` wants 8 cores, 4"),
        ([GPU_BUNDLE] * 2, [NODE, NODE], "STRICT_PACK", ""),
        ([GPU_BUNDLE], [], "PACK", "no node"),
    ],
)
def test_a_bundle_that_fits_nowhere_is_named_with_what_there_is(bundles, nodes, strategy, told):
    found = misfit(bundles, nodes, strategy)
    assert (told in found) if told else found == ""
