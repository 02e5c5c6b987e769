"""All runs of one program: which are made, in what order, and what each says of its tests.

Invariants: expected values stay in this process, or go to judges and checkers, never to a
process that runs the program. A test that failed, or is missing, in a batch has been run alone
before it counts as failed; the first test of a batch was alone, because nothing of another test
had happened before it, and so was every test of a program that could not even be loaded. Every
test has one run that counts: a program that once answers otherwise alone than in a batch could
try two answers, so nothing that a batch said of it counts any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.config import SandboxConfig
from engine.events import Verdict
from engine.problems.problem import CallTest, CodeTest, Problem, StdinTest, Test
from engine.sandbox.compare import matches, same_text
from engine.sandbox.job import (
    AnyJob,
    Bounds,
    CallOutcome,
    Check,
    Execution,
    Job,
    Script,
    Trial,
    bounds,
)

Run = Callable[[AnyJob], Execution]

MOST_WASTED = 10.0
"""A program whose runs with a failed test took so many time limits together is not run again: its
tests that are still open count as beyond the limit. Otherwise an endless program, or one that just
stays below the limit, would cost one limit for each of a hundred tests."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """How one test ended, compared; `outcome` holds what came back and what was raised."""

    __test__ = False  # not a test of ours

    verdict: Verdict
    outcome: CallOutcome

    @property
    def passed(self) -> bool:
        return self.verdict == Verdict.PASSED


class SandboxFailed(Exception):
    """A run failed technically; nothing is known of the program."""


NOT_RUN = "not run: the program had taken too long on tests that it failed"
STOPPED = "not run: an earlier test failed"


@dataclass
class Examination:
    """Finds the results of one program on all tests of its problem."""

    run: Run
    config: SandboxConfig
    problem: Problem
    program: str
    stop_early: bool = False
    """Stop at the first test that failed; those after it get its verdict."""
    seconds: float = 0.0
    strain: float = 0.0
    wasted: float = 0.0
    """Time limits that runs with a failed test took together."""
    _results: dict[int, TestResult] = field(default_factory=dict)
    _alone: set[int] = field(default_factory=set)
    """Tests whose result is that of a run in which nothing came before them."""
    _wavered: bool = False
    """A test that failed in a batch has passed alone."""

    @property
    def tests(self) -> tuple[Test, ...]:
        return (*self.problem.public_tests, *self.problem.private_tests)

    def results(self) -> list[TestResult]:
        """One result per test, public tests first.

        Raises:
            SandboxFailed: the sandbox failed, not the program.
        """
        for kind in (CallTest, CodeTest):
            indices = [i for i, test in enumerate(self.tests) if isinstance(test, kind)]
            if indices:
                self._run_batch(indices)
        self._settle()
        self._settle()  # where a later test wavered, the batch of those before it is in doubt too
        return [self._results[index] for index in range(len(self.tests))]

    def _run_batch(self, indices: list[int]) -> None:
        """Run tests of one kind in one process; what a time limit cut off stays open."""
        results = self._judged(indices)
        in_time = sum(result.verdict != Verdict.TIME_LIMIT for result in results)
        done = max(1, in_time)
        self._results.update(zip(indices[:done], results[:done], strict=True))
        # In a batch, the arguments of all tests take up memory.
        if results[0].verdict != Verdict.MEMORY_LIMIT:
            self._alone.add(indices[0])

    def _settle(self) -> None:
        """Give every test the result that counts, as far as is known by now."""
        failed: TestResult | None = None
        for index in range(len(self.tests)):
            if failed and self.stop_early:
                self._results[index] = TestResult(failed.verdict, _unknown(STOPPED))
                continue
            if self._in_doubt(index):
                self._run_alone(index)
            if not self._results[index].passed:
                failed = failed or self._results[index]

    def _in_doubt(self, index: int) -> bool:
        """Whether a test has to be run alone before its result counts."""
        if index in self._alone:
            return False
        result = self._results.get(index)
        return result is None or self._wavered or (not result.passed and result.outcome.loaded)

    @property
    def given_up(self) -> bool:
        return self.wasted >= MOST_WASTED

    def _run_alone(self, index: int) -> None:
        if self.given_up:
            result = TestResult(Verdict.TIME_LIMIT, _unknown(NOT_RUN))
        else:
            (result,) = self._judged([index])
        self._wavered |= index in self._results and result.passed
        self._results[index] = result
        self._alone.add(index)

    def _judged(self, indices: Sequence[int]) -> list[TestResult]:
        """Run tests of one kind in one process, and compare."""
        tests = [self.tests[index] for index in indices]
        execution = self._execute(self._job(tests))
        verdicts = [
            outcome.verdict or self._compared(test, outcome)
            for test, outcome in zip(tests, execution.outcomes, strict=True)
        ]
        results = [
            TestResult(verdict, outcome)
            for verdict, outcome in zip(verdicts, execution.outcomes, strict=True)
        ]
        if self.problem.comparison.checker:
            results = self._checked(tests, results)
        if not all(result.passed for result in results):
            self.wasted += execution.strain
        return results

    def _execute(self, job: AnyJob) -> Execution:
        execution = self.run(job)
        self.seconds += execution.seconds
        self.strain = max(self.strain, execution.strain)
        failed = [o for o in execution.outcomes if o.verdict == Verdict.SANDBOX_FAILURE]
        if failed:
            raise SandboxFailed(failed[0].error)
        return execution

    def _job(self, tests: Sequence[Test]) -> AnyJob:
        problem, limits = self.problem, self._bounds()
        first = tests[0]
        if isinstance(first, StdinTest):
            return Script(self.program, first.stdin, problem.prelude, limits)
        if isinstance(first, CodeTest):
            codes = tuple(test.code for test in tests)
            return Trial(self.program, problem.entry_point, codes, problem.prelude, limits)
        calls = tuple(test.arguments for test in tests)
        return Job(self.program, problem.entry_point, calls, problem.prelude, limits)

    def _bounds(self) -> Bounds:
        longest = max((_length(test) for test in self.tests), default=0)
        # A power of two says little about the expected answers; the program can see its limits.
        return bounds(self.config, self.problem.limits, 1 << (2 * longest).bit_length())

    def _compared(self, test: Test, outcome: CallOutcome) -> Verdict:
        """The verdict on a value that came back; a checker's may still replace it."""
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
            return same_text(str(actual), str(expected), comparison.tolerance)
        return matches(actual, expected, comparison)

    def _checked(self, tests: Sequence[Test], results: list[TestResult]) -> list[TestResult]:
        """Let the checker judge every value that came back from a call or a script."""
        open_ = [
            i
            for i, (test, result) in enumerate(zip(tests, results, strict=True))
            if result.outcome.verdict is None and not isinstance(test, CodeTest)
        ]
        if not open_:
            return results
        calls = tuple(
            (_given(tests[i]), tests[i].expected, results[i].outcome.value) for i in open_
        )
        check = Check(self.problem.comparison.checker, calls, bounds=bounds(self.config))
        for i, outcome in zip(open_, self._execute(check).outcomes, strict=True):
            results[i] = _by_checker(results[i].outcome, outcome)
        return results


def _by_checker(given: CallOutcome, outcome: CallOutcome) -> TestResult:
    if outcome.verdict is None and outcome.value is True:
        return TestResult(Verdict.PASSED, given)
    error = f"the checker did not accept it: {outcome.error}" if outcome.error else ""
    return TestResult(Verdict.WRONG_ANSWER, CallOutcome(None, given.value, error))


def _given(test: CallTest | StdinTest) -> object:
    return test.stdin if isinstance(test, StdinTest) else test.arguments


def _length(test: Test) -> int:
    """About as many bytes as a right answer has."""
    if isinstance(test, StdinTest):
        return len(test.expected.encode("utf-8", "surrogateescape"))
    return len(repr(test.expected)) if isinstance(test, CallTest) else 0


def _unknown(reason: str) -> CallOutcome:
    return CallOutcome(Verdict.TIME_LIMIT, error=reason)
