"""Whether generation may go on while learners update, by the settings of both."""

from __future__ import annotations

from engine.config.compute import ComputeConfig
from engine.config.training import TrainingConfig


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
