"""Tests of the continuous rollout's scheduler against the bounds of `scheduling.py`.

Broken schedulers must violate them.
"""

from __future__ import annotations

import pytest

from engine.events.log import read_all
from engine.rollout.continuous import ContinuousRollout
from engine.rollout.step_rollout import StepRollout
from tests.engine.rollout.scheduling import lags, scheduling_errors
from tests.engine.training.in_process import a_trainer
from tests.helpers.policies import tiny_config

pytestmark = pytest.mark.slow
STEPS = 5


class Starving(ContinuousRollout):
    """Trees that a step left over are not continued."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.left_over = set()

    def gather(self, count, sink, phases):
        whole = super().gather(count, sink, phases)
        self.left_over = set(self.in_flight)
        return whole

    def _verified(self, phases, name):
        verified = super()._verified(phases, name)
        return [done for done in verified if done.task.mark.tree not in self.left_over]


class WaitingForAll(ContinuousRollout):
    """A step ends with the last of its trees."""

    def gather(self, count, sink, phases):
        return super().gather(len(self.in_flight), sink, phases)


class KeepingWeightsBack(StepRollout):
    """Updated weights reach the generators only when the next step's trees are whole."""

    def begin(self, step, seen, recorder, phases, update):
        super().begin(step, seen, recorder, phases)


def settings(**training):
    """More concurrent answers than one turn takes, so that trees end at different times."""
    own = {"model": "starter:oak", "sampling": {"max_prompt_tokens": 192, "max_new_tokens": 32}}
    return tiny_config(
        agents=[{"name": "oak", **own}],
        problems={"seed": 3, "train": 100, "validation": 0, "test": 0},
        search={"nodes_per_tree": 6, "nodes_in_flight": 2},
        training={"steps": STEPS, "trees_per_step": 12, "checkpoint_every": 99} | training,
        compute={"generators_per_agent": 1},
    )


def logged(folder, config, address, growth=ContinuousRollout, trees=StepRollout):
    """The log of a run with this scheduler."""
    with a_trainer(folder, config, address, rollout=trees) as trainer:
        stop, planting = trainer.should_stop, trainer.trees.planting
        trainer.trees.growth = growth(config, trainer.team, planting, stop)
        trainer.run()
    return list(read_all(folder))


def test_carried_over_trees_continue(ray_address, tmp_path):
    config = settings(extra_trees=8)
    events = logged(tmp_path, config, ray_address)
    assert scheduling_errors(events, config.training) == []


@pytest.mark.large
@pytest.mark.parametrize(
    ("broken", "fault"),
    [(Starving, "trees are starved"), (WaitingForAll, "steps wait for trees that they need not")],
)
def test_a_broken_scheduler_shows(broken, fault, ray_address, tmp_path):
    config = settings(extra_trees=8)
    events = logged(tmp_path, config, ray_address, broken)
    (error,) = scheduling_errors(events, config.training)
    assert fault in error


@pytest.mark.large
def test_weights_that_are_kept_back_show_in_the_lag(ray_address, tmp_path):
    """With overlapping steps, no node has newer weights; in `test_overlap` some have."""
    config = settings(overlap=True, validate_every=99)
    events = logged(tmp_path, config, ray_address, trees=KeepingWeightsBack)
    assert lags(events, range(2, STEPS + 1)) == [1.0] * (STEPS - 1)
