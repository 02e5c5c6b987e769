"""The evaluations of a training: the validation split when due, the test split once.

Invariants:
- The test split is evaluated at the end, for the starting and the final weights; results in the log
  of a resumed run are not computed again.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.config.training import TrainingConfig
from engine.events.log import EventLog
from engine.problems.source import ProblemSet
from engine.run.timing import timed
from engine.training.evaluation import TEST, VALIDATION, Evaluator


class Evaluations:
    """Evaluates, logs the results, and keeps the last validation."""

    def __init__(
        self, options: TrainingConfig, evaluator: Evaluator, problems: ProblemSet, log: EventLog
    ):
        self._every = options.validate_every
        self._evaluator = evaluator
        self._problems = problems
        self._log = log
        self.validation: float | None = None
        """Mean validation Pass@1 of the agents with the current weights, if measured."""

    def after(self, step: int, phases: dict[str, float]) -> None:
        """Validates the weights of a step if that is due; the last validation is over."""
        self.validation = None
        if step % self._every == 0:
            self.validate(step, phases)

    def validate(self, step: int, phases: dict[str, float]) -> None:
        """Validates the current weights, which are those of a step."""
        if not self._problems.validation:
            return
        with timed(phases, "validate"):
            results = self._evaluator.run(step, VALIDATION, self._problems.validation)
        self.validation = sum(results[0].agents.values()) / len(results[0].agents)
        for payload in results:
            self._log.append(payload)

    def test(self, step: int, measured: Collection[tuple[str, int]]) -> None:
        """Evaluates starting and final weights on the test split, unless they are `measured`: split
        and step of each evaluation in the log. The final weights are those of `step`."""
        if not self._problems.test:
            return
        for at, starting in ((0, True), (step, False)):
            if (TEST, at) in measured:
                continue
            results = self._evaluator.run(
                at, TEST, self._problems.test, starting_weights=starting, search=True
            )
            for payload in results:
                self._log.append(payload)
