"""Prompts of an agent: the problem, or the problem with a program and its feedback.

Source: docs/algorithm.md, section 3. Invariant: nothing of a private test enters a prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from engine.environments.types import Message
from engine.events.vocabulary import TestReport, Verdict
from engine.problems.problem import Problem

if TYPE_CHECKING:
    from engine.sandbox.host.job import TraceFrame

FEEDBACK_TESTS = 2
FEEDBACK_CHARACTERS = 120


class Feedback(msgspec.Struct, frozen=True, gc=False):
    """A parent's program and its verdicts on the public tests."""

    program: str
    public: tuple[TestReport, ...] | None
    """None: the prompt contains no verdicts (MARS²-T+ without error feedback)."""
    traces: tuple[tuple[TraceFrame, ...], ...] = ()
    """Of each public test, the frames of its traceback that the prompt shows; empty for none
    (`search.error_traceback`)."""


def root_prompt(problem: Problem, role: str = "") -> list[Message]:
    """Returns chat messages that request a first program."""
    return statement_prompt(problem.statement, role)


def statement_prompt(statement: str, role: str = "") -> list[Message]:
    """Returns the messages of `root_prompt` from the statement alone."""
    return _messages(role, f"{statement}\nAnswer with one complete program.")


def refinement_prompts(
    problem: Problem, feedback: Feedback, role: str = "", has_statement: bool = True
) -> Iterator[list[Message]]:
    """Yields chat messages that request a repair of a program, from the longest to the shortest.

    The caller takes the first that fits its prompt limit: failing tests are dropped first, then the
    program, never the statement. Without `has_statement` (`search.refinement_statement`) a repair
    sees the program and its results alone; where there is no program, it is the root prompt.
    """
    statement = f"{problem.statement}\n" if has_statement else ""
    if feedback.public is None:
        yield _messages(role, _revision_text(statement, feedback.program))
    elif has_statement or feedback.program.strip():
        for shown in range(FEEDBACK_TESTS, -1, -1):
            yield _messages(role, _refinement_text(problem, statement, feedback, shown))
    yield root_prompt(problem, role)


def describe_failures(
    entry_point: str, reports: Sequence[TestReport], shown: int, traces: Sequence[str] = ()
) -> str:
    """Returns one line for each of the first `shown` public tests that did not pass, and after it
    the lines of its traceback; `traces` has those of each test."""
    traces = traces or [""] * len(reports)
    failing = [
        f"{_failure_line(entry_point, report, bool(trace))}\n{trace}"
        for report, trace in zip(reports, traces, strict=True)
        if report.verdict is not Verdict.PASSED
    ]
    return "".join(failing[:shown])


def _trace_lines(program: str, frames: Sequence[TraceFrame]) -> str:
    """Returns the lines of a traceback as Python prints them, with the program's code."""
    code = program.split("\n")
    return "".join(
        f"  line {frame.line}, in {frame.name}\n"
        + (f"    {_clip(code[frame.line - 1].strip())}\n" if frame.line <= len(code) else "")
        for frame in frames
    )


def _refinement_text(problem: Problem, statement: str, feedback: Feedback, shown: int) -> str:
    public = feedback.public or ()
    traces = [_trace_lines(feedback.program, frames) for frames in feedback.traces]
    passed = sum(report.verdict is Verdict.PASSED for report in public)
    return (
        f"{statement}"
        f"This program passed {passed} of {len(public)} public tests:\n"
        f"{_shown(feedback.program)}\n"
        f"{describe_failures(problem.entry_point, public, shown, traces)}"
        f"Answer with one complete program that passes them all."
    )


def _revision_text(statement: str, program: str) -> str:
    return (
        f"{statement}"
        f"This is an earlier program:\n"
        f"{_shown(program)}\n"
        f"Answer with one complete program that is right."
    )


def _shown(program: str) -> str:
    return program.rstrip("\n") or "(no program was found in the answer)"


def _failure_line(entry_point: str, report: TestReport, is_traced: bool) -> str:
    call = f"{entry_point}({_clip(report.input)})"
    if report.verdict is Verdict.WRONG_ANSWER:
        return f"{call} gave {_clip(report.actual)}, expected {_clip(report.expected)}."
    error = report.error.partition("\n")[0] if is_traced else report.error
    reason = _clip(error) or report.verdict.value.replace("_", " ")
    return f"{call} ended with {reason}, expected {_clip(report.expected)}."


def _clip(text: str) -> str:
    return text if len(text) <= FEEDBACK_CHARACTERS else text[: FEEDBACK_CHARACTERS - 3] + "..."


def _messages(role: str, text: str) -> list[Message]:
    system = [{"role": "system", "content": role}] if role else []
    return [*system, {"role": "user", "content": text}]
