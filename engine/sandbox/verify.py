"""From programs to verdicts: runs each on all tests of its problem and compares outside.

Invariants: expected values stay in this process; a failure of the sandbox itself is repeated
once and then reported as SANDBOX_FAILURE, never as a wrong answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.events import TestReport, Verdict
from engine.problems.literals import LiteralError, to_literal
from engine.problems.problem import CallTest, Problem
from engine.sandbox.compare import same_value
from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.job import CallOutcome, Execution, Job
from engine.sandbox.sandbox import Sandbox

MAX_SHOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class Verification:
    """What is known of one program. For SANDBOX_FAILURE nothing is, and there is no score."""

    verdict: Verdict
    """PASSED, or how the first test that failed ended (public tests come first)."""
    fraction: float
    """Share of all tests passed."""
    public: tuple[TestReport, ...]
    """Every public test, in the order of the problem."""
    public_passed: int
    private_passed: bool
    """Every private test passed."""
    error: str = ""
    """What the program raised on the first test that failed, if it raised."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.verdict == Verdict.PASSED


def verify(sandbox: Sandbox, programs: Iterable[tuple[Problem, str]]) -> list[Verification]:
    """Verify programs on the public and private tests of their problems, in order.

    An empty program is NO_PROGRAM and is not run.

    Raises:
        SandboxUnavailable: the sandbox cannot be started.
    """
    pairs = list(programs)
    todo = {i: _job(problem, text) for i, (problem, text) in enumerate(pairs) if text.strip()}
    done = dict(zip(todo, sandbox.run(list(todo.values())), strict=True))
    again = [i for i, execution in done.items() if _failed_technically(execution)]
    done.update(zip(again, sandbox.run([todo[i] for i in again]), strict=True))
    return [
        judge(problem, done[i]) if i in done else _no_program(problem)
        for i, (problem, _) in enumerate(pairs)
    ]


def judge(problem: Problem, execution: Execution) -> Verification:
    """Compare what a program returned with what was expected."""
    tests = (*problem.public_tests, *problem.private_tests)
    verdicts = [_verdict(t, o) for t, o in zip(tests, execution.outcomes, strict=True)]
    if Verdict.SANDBOX_FAILURE in verdicts:
        verdicts = [Verdict.SANDBOX_FAILURE] * len(tests)
    first = next((i for i, v in enumerate(verdicts) if v != Verdict.PASSED), None)
    count = len(problem.public_tests)
    reports = [
        _report(t, o, v)
        for t, o, v in zip(problem.public_tests, execution.outcomes, verdicts, strict=False)
    ]
    return Verification(
        verdict=Verdict.PASSED if first is None else verdicts[first],
        fraction=verdicts.count(Verdict.PASSED) / len(tests),
        public=tuple(reports),
        public_passed=verdicts[:count].count(Verdict.PASSED),
        private_passed=all(verdict == Verdict.PASSED for verdict in verdicts[count:]),
        error="" if first is None else execution.outcomes[first].error,
        seconds=execution.seconds,
    )


def self_check(sandbox: Sandbox) -> None:
    """Make sure that the sandbox tells right from wrong.

    Raises:
        SandboxUnavailable: it does not; names what came instead, and what to look at.
    """
    tests = (CallTest(([3, 1, 2],), [1, 2, 3]),)
    problem = Problem("self-check", "Sort.", "solve", tests, tests)
    cases = {
        "import heapq, colorsys\ndef solve(x):\n    return sorted(x)\n": Verdict.PASSED,
        "def solve(x):\n    return x\n": Verdict.WRONG_ANSWER,
        "def solve(x):\n    return missing\n": Verdict.RUNTIME_ERROR,
    }
    for program, right in cases.items():
        (result,) = verify(sandbox, [(problem, program)])
        if result.verdict != right:
            raise SandboxUnavailable(
                f"the sandbox judged {program!r} as {result.verdict} instead of {right} "
                f"({result.error or 'no error'}); look at sandbox.memory_mb "
                f"= {sandbox.config.memory_mb}, sandbox.wall_seconds "
                f"= {sandbox.config.wall_seconds}, the load of this machine, and whether an "
                f"unprivileged account can read {Path(os.__file__).parent}"
            )


def _job(problem: Problem, program: str) -> Job:
    tests = (*problem.public_tests, *problem.private_tests)
    return Job(program, problem.entry_point, tuple(test.arguments for test in tests))


def _failed_technically(execution: Execution) -> bool:
    return any(o.verdict == Verdict.SANDBOX_FAILURE for o in execution.outcomes)


def _verdict(test: CallTest, outcome: CallOutcome) -> Verdict:
    if outcome.verdict is not None:
        return outcome.verdict
    same = same_value(outcome.value, test.expected)
    return Verdict.PASSED if same else Verdict.WRONG_ANSWER


def _report(test: CallTest, outcome: CallOutcome, verdict: Verdict) -> TestReport:
    return TestReport(
        verdict=verdict,
        input=", ".join(shown(argument) for argument in test.arguments),
        expected=shown(test.expected),
        actual=shown(outcome.value) if outcome.verdict is None else "",
        error=outcome.error,
    )


def _no_program(problem: Problem) -> Verification:
    reports = [
        TestReport(
            Verdict.NO_PROGRAM,
            input=", ".join(shown(argument) for argument in test.arguments),
            expected=shown(test.expected),
        )
        for test in problem.public_tests
    ]
    return Verification(Verdict.NO_PROGRAM, 0.0, tuple(reports), 0, False)


def shown(value: object) -> str:
    """The literal of a value for people and prompts, cut where it gets long."""
    try:
        text = to_literal(value)
    except LiteralError:
        text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…"
