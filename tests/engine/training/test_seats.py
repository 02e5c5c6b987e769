"""Tests of the bundles of a run's actors, and of the error if a bundle fits on no node."""

import pytest

from engine.run.waits import TeamError
from engine.training.seats import Bundle, misfit, seats_of
from tests.helpers.policies import tiny_config

AGENTS = ("oak", "fern")


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
    ("bundles", "nodes", "strategy", "part"),
    [
        ([GPU_BUNDLE] * 4, [NODE, NODE], "PACK", ""),
        ([GPU_BUNDLE] * 5, [NODE, NODE], "PACK", "no node has left"),
        ([GPU_BUNDLE] * 2, [NODE], "STRICT_SPREAD", "1 nodes have: 8 cores, 2 GPUs"),
        ([GPU_BUNDLE] * 4, [NODE, NODE], "STRICT_PACK", "`all bundles together` needs 8 cores, 4"),
        ([GPU_BUNDLE] * 2, [NODE, NODE], "STRICT_PACK", ""),
        ([GPU_BUNDLE], [], "PACK", "no node"),
    ],
)
def test_a_bundle_that_fits_nowhere_is_named_with_what_there_is(bundles, nodes, strategy, part):
    result = misfit(bundles, nodes, strategy)
    assert (part in result) if part else result == ""
