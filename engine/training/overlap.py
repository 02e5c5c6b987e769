"""Overlap of updates with the growth of trees: which step's trees begin when, and with which
weights.

With `training.overlap` a step's update runs while the next step's trees grow. As soon as the update
has ended the generators receive the new weights, and begin the following step with them alongside
the rest of the current one, so that neither their batch nor a core runs empty; the loop waits for
the update when the trees are complete. With `training.steps_ahead` = 2 they begin it earlier, with
the weights of before (`engine.rollout.admission`). Without overlap each update is waited for, and
all of this is one step after the other.
"""

from __future__ import annotations

from engine.config.training import TrainingConfig
from engine.rollout.forest import GrowingTree
from engine.rollout.step_rollout import StepRollout
from engine.training.telemetry import StepRecorder
from engine.training.update_coordinator import UpdateCoordinator


def needs_weights(step: int, options: TrainingConfig) -> bool:
    """Whether this step is followed by a validation or checkpoint, which need final weights."""
    return any(step % every == 0 for every in (options.validate_every, options.checkpoint_every))


class Overlap:
    """Grows the trees of a step while the update of the step before runs, if it still does."""

    def __init__(self, options: TrainingConfig, trees: StepRollout, learning: UpdateCoordinator):
        self._options = options
        self._trees = trees
        self._learning = learning
        self._seen = 0
        """Number of problems begun before the step."""

    def grow(
        self, step: int, seen: int, recorder: StepRecorder, phases: dict[str, float]
    ) -> list[GrowingTree]:
        """Returns the trees of a step, before which `seen` problems were begun. The update of the
        previous one is finished when this returns."""
        trees = self._trees
        self._seen = seen
        trees.begin(step, seen, recorder, phases, self._learning.calls)
        if trees.admission.may_begin(step + 1, updates=step - 2):
            trees.start()
            self._begin_after(step)
        while (grown := trees.grow()) is None:
            self._take_update(phases, step)
        self.finish_update(phases, step)
        return grown

    def after(self, step: int, phases: dict[str, float]) -> None:
        """Waits for the update of a step, unless the next step's trees may grow meanwhile."""
        if not self._options.overlap or needs_weights(step, self._options):
            self.finish_update(phases)

    def finish_update(self, phases: dict[str, float], step: int | None = None) -> None:
        """Waits for the update in flight, if there is one, and takes it."""
        self._learning.wait(phases, self._trees.growth)
        self._take_update(phases, step)

    def end(self) -> None:
        """Discards the trees of the next step, and finishes the update in flight."""
        self._trees.discard_ahead()
        self.finish_update({})

    def _take_update(self, phases: dict[str, float], step: int | None) -> None:
        """Sends the weights of an ended update to the generators, and records it. With a `step`,
        begins the next one with these weights first: the generators wait for it."""
        update = self._learning.send(phases)
        if step is not None:
            self._begin_after(step)
        if update:
            self._learning.record(update)

    def _begin_after(self, step: int) -> None:
        """Begins the next step if the weights that generators now have may write it."""
        options = self._options
        admitted = self._trees.admission.may_begin(step + 1, updates=step - 1)
        if admitted and step < options.steps and not needs_weights(step, options):
            self._trees.begin_ahead(step + 1, self._seen + self._trees.begun)
