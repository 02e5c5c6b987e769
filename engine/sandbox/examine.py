"""All runs of one program: which are made, in what order, and what each says of its tests.

Invariants: expected values stay in this process, or go to judges and checkers, never to a
process that runs the program. A test that failed, or is missing, in a batch has been run alone
before it counts as failed; the first test of a batch was alone, because nothing of another test
had happened before it, and so was every test of a program that could not even be loaded, and what
was returned or raised where it is certain that no call, and no code of a test, leaves anything
behind (stateless.py). Every
test has one run that counts, and which one does not hang on that test's own verdict: a program may
find out, by the numbers of processes for one, how often it was run, and would try another answer
where it is asked again. So if one test of a batch has to be run again because of what came back,
all but the first are.

An endless program would take one time limit for each of a hundred tests. So the runs with a test
that failed have five limits in all; once they are used up, the tests that are still open share
five more among them. Each is run, alone, but has a smaller limit than its problem's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

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
from engine.sandbox.stateless import is_stateless, is_stateless_test

Run = Callable[[AnyJob], Execution]

MOST_WASTED = 5.0
"""Time limits that runs with a failed test may take together before those left have to share."""
LEAST_SHARE = 0.02
"""Of a time limit, what a test has at least: enough to start a program and run what is quick."""


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


IN_SHORT = "; it was shorter, because the program had taken too long on tests that it failed"
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
    """Time limits, those of the problem, that runs with a failed test took together."""
    _results: dict[int, TestResult] = field(default_factory=dict)
    _alone: set[int] = field(default_factory=set)
    """Tests whose result is that of a run in which nothing came before them."""
    _doubted: bool = False
    """A test failed in a batch by what came back, and might not have alone."""

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
        while doubtful := self._doubtful():
            self._run_alone(doubtful)
        results = [self._results[index] for index in range(len(self.tests))]
        return _stopped(results) if self.stop_early else results

    def _run_batch(self, indices: list[int]) -> None:
        """Run tests of one kind in one process; what a time limit cut off stays open."""
        results = self._judged(indices)
        in_time = sum(result.verdict != Verdict.TIME_LIMIT for result in results)
        done = max(1, in_time)
        self._results.update(zip(indices[:done], results[:done], strict=True))
        # In a batch, the arguments of all tests take up memory, and the results of all room: a
        # stream that was cut off says nothing of any test.
        cut = results[0].verdict == Verdict.RUNTIME_ERROR and not results[0].outcome.told
        if results[0].verdict != Verdict.MEMORY_LIMIT and not cut:
            self._alone.add(indices[0])
        self._doubted |= any(
            self._results[index].outcome.told and self._in_doubt(index) for index in indices[:done]
        )

    def _doubtful(self) -> list[int]:
        """Tests to be run alone next, which can go into one job: in order, all of one kind."""
        doubtful: list[int] = []
        for index, test in enumerate(self.tests):
            if self._in_doubt(index):
                if doubtful and (self.stop_early or not self._in_one_job(doubtful[0], test)):
                    break
                doubtful.append(index)
            elif self.stop_early and not self._results[index].passed:
                for later in range(index + 1, len(self.tests)):
                    self._results[later] = self._results[index]
                break
        return doubtful

    def _in_one_job(self, first: int, test: Test) -> bool:
        return isinstance(self.tests[first], CallTest) and isinstance(test, CallTest)

    def _in_doubt(self, index: int) -> bool:
        """Whether a test has to be run alone before its result counts."""
        if index in self._alone:
            return False
        result = self._results.get(index)
        if result is None or self._doubted:
            return True
        return not (result.passed or not result.outcome.loaded or self._was_as_alone(index))

    def _was_as_alone(self, index: int) -> bool:
        """Whether nothing in a batch can have changed what came of this call."""
        lasting = (Verdict.WRONG_ANSWER, Verdict.RUNTIME_ERROR)
        result = self._results[index]
        return (
            not self.problem.comparison.checker
            and result.outcome.told
            and result.verdict in lasting
            and self._stateless
            and (isinstance(self.tests[index], CallTest) or self._stateless_tests)
        )

    @cached_property
    def _stateless(self) -> bool:
        return is_stateless(self.problem.prelude, self.program)

    @cached_property
    def _stateless_tests(self) -> bool:
        owner, _, method = self.problem.entry_point.rpartition(".")
        codes = [test.code for test in self.tests if isinstance(test, CodeTest)]
        given = {"candidate", owner or method}
        return all(is_stateless_test(self.problem.prelude, code, given) for code in codes)

    def _run_alone(self, indices: list[int]) -> None:
        """Run tests of one kind, each in a process of its own; some may stay open."""
        for index, result in zip(indices, self._judged(indices, alone=True), strict=False):
            self._results[index] = result
            self._alone.add(index)

    def _judged(self, indices: Sequence[int], alone: bool = False) -> list[TestResult]:
        """Run tests of one kind in one process, or as many as can be alone, and compare."""
        share = self._share() if alone else 1.0
        tests = [self.tests[index] for index in indices]
        execution = self._execute(self._job(tests, share, alone))
        results = [
            TestResult(outcome.verdict or self._compared(test, outcome), outcome)
            for test, outcome in zip(tests, execution.outcomes, strict=False)
        ]
        if self.problem.comparison.checker:
            # Where a test is alone, nothing of another may come before its check either.
            apart = [[i] for i in range(len(results))] if alone else [range(len(results))]
            results = [
                result
                for part in apart
                for result in self._checked([tests[i] for i in part], [results[i] for i in part])
            ]
        if alone:
            failed = [
                strain
                for result, strain in zip(results, execution.strains, strict=True)
                if not result.passed
            ]
            self.wasted += share * sum(failed)
        elif not all(result.passed for result in results):
            self.wasted += execution.strain
        return [_in_short(result) if share < 1 else result for result in results]

    def _share(self) -> float:
        """Share of its time limit that each test which is still open has, alone."""
        left = MOST_WASTED - self.wasted
        if left > 0:
            return 1.0
        open_ = sum(self._in_doubt(index) for index in range(len(self.tests)))
        return min(1.0, max(LEAST_SHARE, (left + MOST_WASTED) / open_))

    def _execute(self, job: AnyJob) -> Execution:
        execution = self.run(job)
        self.seconds += execution.seconds
        self.strain = max(self.strain, execution.strain)
        failed = [o for o in execution.outcomes if o.verdict == Verdict.SANDBOX_FAILURE]
        if failed:
            raise SandboxFailed(failed[0].error)
        return execution

    def _job(self, tests: Sequence[Test], share: float, alone: bool) -> AnyJob:
        problem, limits = self.problem, self._bounds(share)
        first = tests[0]
        if isinstance(first, StdinTest):
            return Script(self.program, first.stdin, problem.prelude, limits)
        if isinstance(first, CodeTest):
            codes = tuple(test.code for test in tests)
            return Trial(self.program, problem.entry_point, codes, problem.prelude, limits)
        calls = tuple(test.arguments for test in tests)
        return Job(self.program, problem.entry_point, calls, problem.prelude, limits, alone)

    def _bounds(self, share: float) -> Bounds:
        longest = max((_length(test) for test in self.tests), default=0)
        # A power of two says little about the expected answers; the program can see its limits.
        whole = bounds(self.config, self.problem.limits, 1 << (2 * longest).bit_length())
        return replace(
            whole,
            cpu_seconds=share * whole.cpu_seconds,
            wall_seconds=share * whole.wall_seconds,
        )

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


def _stopped(results: list[TestResult]) -> list[TestResult]:
    """The first test that failed, and what stands after it: tests that were not run."""
    first = next((i for i, r in enumerate(results) if not r.passed), len(results))
    not_run = [
        TestResult(results[first].verdict, CallOutcome(Verdict.TIME_LIMIT, error=STOPPED))
        for _ in results[first + 1 :]
    ]
    return [*results[: first + 1], *not_run]


def _in_short(result: TestResult) -> TestResult:
    if result.verdict != Verdict.TIME_LIMIT:
        return result
    outcome = replace(result.outcome, error=result.outcome.error + IN_SHORT)
    return TestResult(result.verdict, outcome)
