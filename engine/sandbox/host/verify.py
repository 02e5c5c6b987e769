"""Verification of programs: runs each on all tests of its problem and compares outside.

Invariants: expected values never enter a process that runs a program; after a failure of the
sandbox itself the run is repeated once, and a second one is reported as SANDBOX_FAILURE, never as
a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.events.vocabulary import TestReport, Verdict
from engine.sandbox.cases import CallTest, JudgedTask, StdinTest, Test
from engine.sandbox.guest.literals import LiteralError, to_literal
from engine.sandbox.host.examine import Examination, Run, SandboxFailed, TestResult
from engine.sandbox.host.job import CallOutcome, TraceFrame
from engine.sandbox.host.sandbox import Sandbox

MAX_SHOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class Verification:
    """Verdict and test results of one program. SANDBOX_FAILURE says nothing about the program, and
    has no score."""

    verdict: Verdict
    """PASSED, or the verdict of the first test that failed (public tests come first)."""
    fraction: float
    """Share of all tests passed."""
    public: tuple[TestReport, ...]
    """Report of every public test, in the order of the problem."""
    public_passed: int
    private_passed: bool
    """Whether every private test passed."""
    error: str = ""
    """Error of the program on the first test that failed, if it raised."""
    seconds: float = 0.0
    traces: tuple[tuple[TraceFrame, ...], ...] = ()
    """Of each public test, the program's last frames in the traceback; empty if it raised
    nothing. Frames of private tests are not kept."""
    strain: float = 0.0
    """Largest share of a time limit that one of its runs used; 1 is the whole limit."""

    @property
    def near_its_limit(self) -> bool:
        """Whether a run used over half of a time limit, and may end otherwise under other load."""
        return self.strain > 0.5

    @property
    def passed(self) -> bool:
        return self.verdict == Verdict.PASSED


def verify(
    sandbox: Sandbox, programs: Iterable[tuple[JudgedTask, str]], stop_early: bool = False
) -> list[Verification]:
    """Verifies programs on the public and private tests of their problems, in order.

    An empty program is NO_PROGRAM and is not run. With `stop_early`, a program is no longer run
    once a test has failed, and all tests after that one count as failed.

    Raises:
        SandboxUnavailable: the sandbox cannot be started.
    """

    def verified(run: Run, pair: tuple[JudgedTask, str]) -> Verification:
        problem, program = pair
        if not program.strip():
            return _no_program(problem)
        for _ in range(2):
            examination = Examination(
                run, sandbox.config, problem, program, stop_early, sandbox.caps
            )
            try:
                results = examination.results()
            except SandboxFailed as failure:
                cause = str(failure)
                continue
            return summary(problem, results, examination.seconds, examination.strain)
        failed = TestResult(
            Verdict.SANDBOX_FAILURE, CallOutcome(Verdict.SANDBOX_FAILURE, error=cause)
        )
        count = len(problem.public_tests) + len(problem.private_tests)
        return summary(problem, [failed] * count, 0.0, 0.0)

    return sandbox.each(verified, list(programs))


def summary(
    problem: JudgedTask, results: Sequence[TestResult], seconds: float, strain: float
) -> Verification:
    """Combines the results of all tests, public ones first."""
    first = next((result for result in results if not result.passed), None)
    count = len(problem.public_tests)
    return Verification(
        verdict=Verdict.PASSED if first is None else first.verdict,
        fraction=sum(result.passed for result in results) / len(results),
        public=tuple(map(_report, problem.public_tests, results)),
        public_passed=sum(result.passed for result in results[:count]),
        private_passed=all(result.passed for result in results[count:]),
        error="" if first is None else first.outcome.error,
        seconds=seconds,
        strain=strain,
        traces=tuple(result.outcome.frames for result in results[:count]),
    )


def _report(test: Test, result: TestResult) -> TestReport:
    outcome = result.outcome
    returned = outcome.verdict is None and isinstance(test, CallTest | StdinTest)
    return TestReport(
        verdict=result.verdict,
        input=_input(test),
        expected=_expected(test),
        actual=shown(outcome.value) if returned else "",
        error=outcome.error,
    )


def _no_program(problem: JudgedTask) -> Verification:
    reports = [
        TestReport(Verdict.NO_PROGRAM, input=_input(test), expected=_expected(test))
        for test in problem.public_tests
    ]
    return Verification(Verdict.NO_PROGRAM, 0.0, tuple(reports), 0, False)


def _input(test: Test) -> str:
    """Returns the input of a test: arguments or stdin as literals, or its code."""
    if isinstance(test, CallTest):
        return ", ".join(shown(argument) for argument in test.arguments)
    return shown(test.stdin) if isinstance(test, StdinTest) else _cut(test.code)


def _expected(test: Test) -> str:
    return shown(test.expected) if isinstance(test, CallTest | StdinTest) else ""


def shown(value: object) -> str:
    """Returns a value's literal for people and prompts, cut to MAX_SHOWN_CHARS."""
    try:
        text = to_literal(value)
    except LiteralError:  # only an expected value can be so large, or so deep
        text = repr(value)
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…"
