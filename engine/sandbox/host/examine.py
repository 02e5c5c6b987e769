"""Examination of one program: which runs are made, in what order, and which counts for a test.

Invariants: expected values stay in this process, or go to judges and checkers, never to a
process that runs the program. Which run of a test counts is decided before any result of any run
is compared:

- A program that is not proved stateless (stateless.py), or whose code tests are not, runs each
  test alone from the start, in a process in which nothing of the program has run before. That run
  counts, whatever its outcome.
- Tests proved stateless run as one batch per kind, and the value or exception of a call or a code
  test counts. The batch has no result for tests that it did not answer: the one at which the
  process reached a limit or died, and those after it. These run alone, and then that run counts.
  So no test has two answers to choose from: the second run is made only where the first gave none.
  The program can influence this neither by a verdict, which none of its processes ever sees, nor,
  being proved stateless, by detecting which of the two runs it is in.
- If the very first run of a program cannot load it, all tests get the outcome of that run:
  loading precedes any test, and a failure earns nothing.

Only the time of a run depends on verdicts, and with `stop_early` whether it is made at all. An
endless program would take one time limit for each of a hundred tests. So the runs with a failed
test have five limits in total; once they are used up, the tests that are still open share five
more. Each of these runs alone, with a smaller limit than its problem's, which is not among the
limits that a program can read (`Bounds.backstop_seconds`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.sandbox.cases import CallTest, CodeTest, JudgedTask, StdinTest, Test
from engine.sandbox.host.grading import LIMITS, Grader, TestResult, stopped
from engine.sandbox.host.job import (
    NO_CAPS,
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
from engine.sandbox.host.stateless import is_stateless, is_stateless_test
from engine.sandbox.host.stream import TOO_MUCH
from engine.sandbox.limits import SandboxCaps

Run = Callable[[AnyJob], Execution]

MAX_WASTED = 5.0
"""Time limits that runs with a failed test may take in total before the rest have to share."""
MIN_SHARE = 0.02
"""Least share of a time limit for a test: enough to start a program and run a quick test."""
MAX_READ, TIMES_EXPECTED = 1 << 20, 4
"""Characters of results that are read per program: MAX_READ plus TIMES_EXPECTED times the size of
all expected answers. Further results are not read, and count as over the output limit."""
SHORT_LIMIT_NOTE = (
    "; it was shorter, because the program had taken too long on tests that it failed"
)


class SandboxFailed(Exception):
    """A run failed technically; it says nothing about the program."""


@dataclass
class Examination:
    """Runs one program on all tests of its problem and collects the results."""

    run: Run
    config: SandboxConfig
    problem: JudgedTask
    program: str
    stop_early: bool = False
    """Whether to stop at the first failed test; those after it get its verdict."""
    caps: SandboxCaps = NO_CAPS
    seconds: float = 0.0
    strain: float = 0.0
    wasted: float = 0.0
    """Time that runs with a failed test took in total, in units of the problem's time limit."""
    _results: dict[int, TestResult] = field(default_factory=dict)
    _read: int = 0

    def __post_init__(self) -> None:
        self._grader = Grader(self._execute, self.config, self.problem)

    @cached_property
    def tests(self) -> tuple[Test, ...]:
        return (*self.problem.public_tests, *self.problem.private_tests)

    def results(self) -> list[TestResult]:
        """Returns one result per test, public tests first.

        Raises:
            SandboxFailed: the sandbox failed, not the program.
        """
        for kind, proved in ((CallTest, self._stateless), (CodeTest, self._stateless_tests)):
            indices = [i for i, test in enumerate(self.tests) if isinstance(test, kind)]
            if len(indices) > 1 and proved():
                self._run_batch(indices)
        while open_ := self._open():
            self._run_isolated(open_)
        results = [self._results[index] for index in range(len(self.tests))]
        return stopped(results) if self.stop_early else results

    def _stateless(self) -> bool:
        return self._proved

    @cached_property
    def _proved(self) -> bool:
        return is_stateless(self.problem.prelude, self.program)

    def _stateless_tests(self) -> bool:
        owner, _, method = self.problem.entry_point.rpartition(".")
        codes = [test.code for test in self.tests if isinstance(test, CodeTest)]
        given = {"candidate", owner or method}
        prelude = self.problem.prelude
        return self._proved and all(is_stateless_test(prelude, code, given) for code in codes)

    def _run_batch(self, indices: list[int]) -> None:
        """Runs tests of one kind in one process; those without an answer stay open."""
        execution = self._execute(
            self._job([self.tests[i] for i in indices], 1.0, fork_per_call=False)
        )
        counts = [
            (index, outcome)
            for index, outcome in zip(indices, execution.outcomes, strict=True)
            if _answered(outcome) or (index == indices[0] and _same_if_isolated(outcome))
        ]
        results = self._graded([index for index, _ in counts], [outcome for _, outcome in counts])
        if not all(result.passed for result in results):
            self.wasted += execution.strain
        self._results.update(zip((index for index, _ in counts), results, strict=True))

    def _open(self) -> list[int]:
        """Returns the tests to run alone next, in one job: in order, all of one kind."""
        open_: list[int] = []
        for index, test in enumerate(self.tests):
            result = self._results.get(index)
            if result is None:
                if open_ and (self.stop_early or not self._in_one_job(open_[0], test)):
                    break
                open_.append(index)
            elif self.stop_early and not result.passed:
                for later in range(index + 1, len(self.tests)):
                    self._results[later] = result
                break
        return open_

    def _in_one_job(self, first: int, test: Test) -> bool:
        return isinstance(self.tests[first], CallTest) and isinstance(test, CallTest)

    def _run_isolated(self, indices: list[int]) -> None:
        """Runs tests of one kind, each in its own process; some may stay open."""
        first = not self._results
        share = self._share()
        execution = self._execute(
            self._job([self.tests[i] for i in indices], share, fork_per_call=True)
        )
        results = self._graded(indices, execution.outcomes)
        failed = [
            strain
            for result, strain in zip(results, execution.strains, strict=True)
            if not result.passed
        ]
        self.wasted += share * sum(failed)
        if share < 1:
            results = [_with_short_limit_note(result) for result in results]
        self._results.update(zip(indices, results, strict=False))
        if first and not results[0].outcome.loaded:
            for index, test in enumerate(self.tests):
                if not isinstance(test, StdinTest):
                    self._results[index] = results[0]

    def _graded(self, indices: Sequence[int], outcomes: Sequence[CallOutcome]) -> list[TestResult]:
        return self._grader.results([self.tests[index] for index in indices], outcomes)

    def _share(self) -> float:
        """Returns the share of its time limit that each open test gets when it runs alone."""
        left = MAX_WASTED - self.wasted
        if left > 0:
            return 1.0
        open_ = len(self.tests) - len(self._results)
        return min(1.0, max(MIN_SHARE, (left + MAX_WASTED) / open_))

    def _execute(self, job: AnyJob) -> Execution:
        execution = self.run(job)
        self.seconds += execution.seconds
        self._read += 0 if isinstance(job, Check) else execution.read_chars
        self.strain = max(self.strain, execution.strain)
        failed = [o for o in execution.outcomes if o.verdict == Verdict.SANDBOX_FAILURE]
        if failed:
            raise SandboxFailed(failed[0].error)
        return execution

    def _job(self, tests: Sequence[Test], share: float, fork_per_call: bool) -> AnyJob:
        problem, limits = self.problem, self._bounds(share)
        first = tests[0]
        if isinstance(first, StdinTest):
            return Script(self.program, first.stdin, problem.prelude, limits)
        if isinstance(first, CodeTest):
            codes = tuple(test.code for test in cast(Sequence[CodeTest], tests))
            return Trial(self.program, problem.entry_point, codes, problem.prelude, limits)
        calls = tuple(test.arguments for test in cast(Sequence[CallTest], tests))
        return Job(self.program, problem.entry_point, calls, problem.prelude, limits, fork_per_call)

    def _bounds(self, share: float) -> Bounds:
        whole = self._whole
        return replace(
            whole,
            cpu_seconds=share * whole.cpu_seconds,
            wall_seconds=share * whole.wall_seconds,
            backstop_seconds=whole.cpu_seconds,
            read_chars=max(0, whole.read_chars - self._read),
        )

    @cached_property
    def _whole(self) -> Bounds:
        lengths = [_length(test) for test in self.tests]
        # A power of two reveals little about the expected answers; the program can see its limits.
        output = 1 << (2 * max(lengths)).bit_length()
        whole = bounds(self.config, self.problem.limits, output, self.caps)
        return replace(whole, read_chars=MAX_READ + TIMES_EXPECTED * sum(lengths))


def _answered(outcome: CallOutcome) -> bool:
    """Whether a batch ran a test to its end, or could not load the program for any; or returned
    more than is read of this program, which would be so alone too."""
    ended = outcome.verdict not in LIMITS or not outcome.loaded or outcome is TOO_MUCH
    return outcome.reported and ended


def _same_if_isolated(outcome: CallOutcome) -> bool:
    """Whether the first test of a batch would end the same alone, since nothing ran before it.

    False where memory or room for results ran out: in a batch, the arguments of all tests take up
    memory, and the results of all take up room. A stream that was cut off has no result.
    """
    cut = outcome.verdict == Verdict.RUNTIME_ERROR and not outcome.reported
    return outcome.verdict != Verdict.MEMORY_LIMIT and not cut


def _length(test: Test) -> int:
    """Returns the approximate size of a right answer in bytes."""
    if isinstance(test, StdinTest):
        return len(test.expected.encode("utf-8", "surrogateescape"))
    return len(repr(test.expected)) if isinstance(test, CallTest) else 0


def _with_short_limit_note(result: TestResult) -> TestResult:
    if result.verdict != Verdict.TIME_LIMIT:
        return result
    outcome = replace(result.outcome, error=result.outcome.error + SHORT_LIMIT_NOTE)
    return TestResult(result.verdict, outcome)
