"""Settings of generation that goes on while learners update, part of those of the training, and
whether they go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from engine.config.base import Whole, described

if TYPE_CHECKING:
    from engine.config.compute import ComputeConfig
    from engine.config.training import TrainingConfig

Overlap = Annotated[
    bool,
    described("""
    Learn from a step while the next one is generated, with weights one update older. The overlap
    ends at every validation and checkpoint. Needs `compute.generators_per_agent`.
    """),
]
ExtraTrees = Annotated[
    Whole,
    Field(ge=0, lt=65536),
    described("""
    Trees that grow in addition to those of a step. A step ends when `trees_per_step` are
    complete; the others are carried over, each node with the version that wrote it.
    """),
]
StepsAhead = Annotated[
    Whole,
    Field(ge=1, le=2),
    described("""
    With `overlap`, number of steps by which generation may be ahead of the weights. 1: a step
    begins once the update of the last but one has ended. 2: it begins as trees of the step before
    complete, with weights one update older still, and generators never wait for a learner.
    """),
]
Interrupt = Annotated[
    bool,
    described("""
    Stop the answers in flight when new weights arrive, and carry them on with these; without,
    the weights wait until they are complete. Each token keeps the log-probability of the version
    that sampled it, `max_staleness` counts from the oldest. Needs `overlap` or `extra_trees`.
    """),
]


def check_overlap(training: TrainingConfig, compute: ComputeConfig) -> None:
    """Raises `ValueError`, with setting, value and remedy, if settings contradict each other."""
    if training.overlap and not compute.generators_per_agent:
        raise ValueError(
            "training.overlap = true with compute.generators_per_agent = 0: a learner cannot "
            "generate and train at once; set compute.generators_per_agent to 1 or more"
        )
    if training.overlap and not training.max_staleness:
        raise ValueError(
            "training.overlap = true with training.max_staleness = 0: every node is one update "
            "old when it is trained on; set training.max_staleness to 1 or more"
        )
    if training.steps_ahead > 1 and not training.overlap:
        raise ValueError(
            f"training.steps_ahead = {training.steps_ahead} with training.overlap = false: "
            "generation waits for every update; set training.overlap to true, or leave "
            "training.steps_ahead out"
        )
    if training.max_staleness < training.steps_ahead > 1:
        raise ValueError(
            f"training.steps_ahead = {training.steps_ahead} with training.max_staleness = "
            f"{training.max_staleness}: nodes would be too old to be trained on; raise "
            "training.max_staleness to it"
        )
    if training.interrupt and not (training.overlap or training.extra_trees):
        raise ValueError(
            "training.interrupt = true with neither training.overlap nor training.extra_trees: "
            "no answer is in flight when weights change; leave training.interrupt out, or set "
            "one of the two"
        )
    for name, given in (("overlap", training.overlap), ("extra_trees", training.extra_trees)):
        if compute.deterministic and given:
            raise ValueError(
                f"training.{name} = {given} with compute.deterministic = true: which weights "
                "wrote an answer would depend on when a run was stopped and on the load of the "
                f"machine; leave training.{name} out, or set compute.deterministic to false"
            )
