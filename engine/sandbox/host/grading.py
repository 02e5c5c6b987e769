"""Grading: from the outcome of a test to its result, by comparison or by a checker.

Invariant: nothing here runs a program; a checker runs where no program ever does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.sandbox.cases import CallTest, CodeTest, JudgedTask, StdinTest, Test
from engine.sandbox.host.compare import matches, same_output
from engine.sandbox.host.job import CallOutcome, Check, Execution, bounds
from engine.sandbox.host.stateless import is_stateless

STOPPED = "not run: an earlier test failed"
NOT_CHECKED = "not checked: the checks of this program's results had taken too long"
LIMITS = (Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT, Verdict.KILLED)
"""Verdicts of a run that ended in a test without an answer to it."""
MAX_CHECKING = 5.0
"""Time limits that the checks of one program's results may take in total."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """Result of one test, after comparison; `outcome` holds the value and the error."""

    __test__ = False  # not a test case of pytest

    verdict: Verdict
    outcome: CallOutcome

    @property
    def passed(self) -> bool:
        return self.verdict == Verdict.PASSED


@dataclass
class Grader:
    """Grades outcomes; `execute` runs a check and raises if the sandbox failed."""

    execute: Callable[[Check], Execution]
    config: SandboxConfig
    problem: JudgedTask
    _taken: float = 0.0

    def results(self, tests: Sequence[Test], outcomes: Sequence[CallOutcome]) -> list[TestResult]:
        """Returns one result per outcome."""
        results = [
            TestResult(outcome.verdict or self._compared(test, outcome), outcome)
            for test, outcome in zip(tests, outcomes, strict=False)
        ]
        if self.problem.comparison.checker:
            self._check(tests, results)
        return results

    def _compared(self, test: Test, outcome: CallOutcome) -> Verdict:
        """Returns the verdict on a returned value; a checker's verdict replaces it."""
        if isinstance(test, CodeTest):
            right = outcome.value is True
        else:
            right = any(
                self._right(test, outcome.value, e) for e in (test.expected, *test.accepted)
            )
        return Verdict.PASSED if right else Verdict.WRONG_ANSWER

    def _right(self, test: CallTest | StdinTest, actual: object, expected: object) -> bool:
        comparison = self.problem.comparison
        if comparison.checker:
            return False
        if isinstance(test, StdinTest):
            return same_output(str(actual), str(expected), comparison)
        return matches(actual, expected, comparison)

    def _check(self, tests: Sequence[Test], results: list[TestResult]) -> None:
        """Replaces the result of every value that a call or a script returned by the checker's.

        If the checker is stateless, all checks run in one process, and those that it did not answer
        in one process each; otherwise each check runs in its own process.
        """
        open_ = [
            (i, (_given(test), test.expected, result.outcome.value))
            for i, (test, result) in enumerate(zip(tests, results, strict=False))
            if result.outcome.verdict is None and not isinstance(test, CodeTest)
        ]
        if len(open_) > 1 and self._stateless_checker:
            together = self._checked([call for _, call in open_])
            for (i, _), outcome in zip(open_, together, strict=True):
                results[i] = _by_checker(results[i].outcome, outcome)
            open_ = [
                one
                for one, outcome in zip(open_, together, strict=True)
                if not outcome.reported or outcome.verdict in LIMITS
            ]
        for i, call in open_:
            results[i] = _by_checker(results[i].outcome, self._checked([call])[0])

    def _checked(self, calls: list[tuple[object, object, object]]) -> Sequence[CallOutcome]:
        if self._taken > MAX_CHECKING:
            return [CallOutcome(Verdict.TIME_LIMIT, error=NOT_CHECKED)] * len(calls)
        check = Check(self.problem.comparison.checker, tuple(calls), bounds=bounds(self.config))
        execution = self.execute(check)
        self._taken += execution.strain
        return execution.outcomes

    @cached_property
    def _stateless_checker(self) -> bool:
        return is_stateless("", self.problem.comparison.checker)


def stopped(results: list[TestResult]) -> list[TestResult]:
    """Returns the results up to the first failed test, and the rest as tests that were not run."""
    first = next((i for i, r in enumerate(results) if not r.passed), len(results))
    not_run = [
        TestResult(results[first].verdict, CallOutcome(Verdict.TIME_LIMIT, error=STOPPED))
        for _ in results[first + 1 :]
    ]
    return [*results[: first + 1], *not_run]


def _by_checker(given: CallOutcome, outcome: CallOutcome) -> TestResult:
    if outcome.verdict is None and outcome.value is True:
        return TestResult(Verdict.PASSED, given)
    error = f"the checker did not accept it: {outcome.error}" if outcome.error else ""
    return TestResult(Verdict.WRONG_ANSWER, replace(given, error=error))


def _given(test: CallTest | StdinTest) -> object:
    return test.stdin if isinstance(test, StdinTest) else test.arguments
