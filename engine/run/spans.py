"""Spans of a run's steps, their phases, and the calls to actors in these.

Invariants: a phase is one span of its step, from its first block of `timed` or its first call to
the end of its last one, at the latest that of the step, and `grove.phase.seconds` is what `timed`
measured of it; a phase within another one (`generate` of a validation) is a span in that one's. A
call is a span from its submission to when the loop sees its end, which may be after its step.
Everything here belongs to the loop's thread. Without traces (`engine.config.tracing`) nothing is
kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from engine.config import tracing
from engine.run.exit_status import ExitCode


@dataclass(eq=False)
class _Phase:
    """A span of a phase, or of what has phases: a step, or the run itself (`name` is empty)."""

    name: str
    span: Any
    seconds: float = 0.0
    last_ns: int = 0
    calls: int = 0
    """Calls in flight."""
    phases: dict[str, _Phase] = field(default_factory=dict)

    def phase(self, name: str) -> _Phase:
        """Returns the phase of this name in this span, new if need be."""
        if name not in self.phases:
            opened = tracing.open_span(name, {"grove.phase": name}, self.span)
            self.phases[name] = _Phase(name, opened, last_ns=time.time_ns())
        return self.phases[name]

    def close(self) -> None:
        """Ends the phases in this one, then its own span, if it is a phase."""
        for one in self.phases.values():
            one.close()
        self.phases.clear()
        if self.name:
            self.span.set_attribute("grove.phase.seconds", self.seconds)
            tracing.close_span(self.span, None if self.calls else self.last_ns)


SERVICE = "grove-engine"

_current = _Phase("", None)
_calls: dict[Any, tuple[_Phase, Any]] = {}
"""Phase and span of the calls in flight."""


@contextmanager
def step_span(step: int) -> Iterator[None]:
    """Has the block in a span of this step."""
    with tracing.span("step", {"grove.step": step}) as opened, _scope(_Phase("", opened)):
        yield


@contextmanager
def run_span(kind: str, run: str) -> Iterator[Callable[[ExitCode], ExitCode]]:
    """Has the traces of this process for the block, in a span of the run; `kind` names its work.
    Yields a function that notes the run's exit status and returns it: a run that failed or was
    refused is an error of its span, one that was stopped is not."""
    with tracing.traced(SERVICE, kind, {"grove.run.id": run}) as opened:

        def noted(code: ExitCode) -> ExitCode:
            if code in (ExitCode.FAILED, ExitCode.REFUSED):
                tracing.note_error(opened, code.name.lower())
            return code

        try:
            with _scope(_Phase("", None)):
                yield noted
        finally:
            ended(list(_calls), error="abandoned")


@contextmanager
def _scope(scope: _Phase) -> Iterator[None]:
    global _current
    before, _current = _current, scope
    try:
        yield
    finally:
        _current = before
        scope.close()


@contextmanager
def phase_span(name: str) -> Iterator[None]:
    """Adds the block to the span of a phase."""
    global _current
    if not tracing.is_on():
        yield
        return
    before, mine = _current, _current.phase(name)
    _current = mine
    try:
        yield
    finally:
        _current = before
        mine.last_ns = time.time_ns()


def measured(name: str, seconds: float) -> None:
    """Adds the measured seconds of a block that `phase_span` has just ended."""
    if tracing.is_on():
        _current.phase(name).seconds += seconds


def submitted(call: Any, phase: str, verb: str, **about: str | int) -> Any:
    """Returns the call of an actor, which has a span in this phase from now on."""
    if tracing.is_on():
        inside = _current if _current.name == phase else _current.phase(phase)
        attributes = {f"grove.{name}": value for name, value in about.items()}
        inside.calls += 1
        _calls[call] = inside, tracing.open_span(verb, attributes, inside.span)
    return call


def ended(calls: Collection[Any], error: str = "") -> None:
    """Ends the spans of calls that have ended; `error` is the type of what ended them."""
    for call in calls if _calls else ():
        if call in _calls:
            inside, span = _calls.pop(call)
            tracing.close_span(span, error=error)
            inside.calls -= 1
            inside.last_ns = time.time_ns()
