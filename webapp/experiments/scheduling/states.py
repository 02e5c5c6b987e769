"""Transitions between run states (docs/architecture.md, "Run states")."""

from __future__ import annotations

from engine.config.errors import ConfigError
from engine.events.vocabulary import RunState
from webapp.errors import Refused

Q, ST, R, SG, SD, FN, FL = (
    RunState.QUEUED,
    RunState.STARTING,
    RunState.RUNNING,
    RunState.STOPPING,
    RunState.STOPPED,
    RunState.FINISHED,
    RunState.FAILED,
)

ALLOWED: dict[RunState, frozenset[RunState]] = {
    Q: frozenset({ST, SD, FL}),
    # A run with a lapsed lease starts again: starting and running lead back.
    ST: frozenset({ST, R, SG, SD, FN, FL}),
    R: frozenset({ST, R, SG, SD, FN, FL}),
    SG: frozenset({SD, FN, FL}),
    SD: frozenset({Q}),
    FL: frozenset({Q}),
    FN: frozenset(),
}

HELD = frozenset({ST, R, SG})
"""States in which a worker must hold a lease."""
ENDED = frozenset({SD, FN, FL})


class NotNow(Refused, ConfigError):
    """Raised for a valid request that the current state does not allow."""

    sentence = "Nothing changed."


class DoesNotFit(Refused, ConfigError):
    """Raised when each setting is valid, but they do not fit each other, the recipe or the
    project's contents."""

    sentence = "These settings cannot run."


class NotAllowed(ConfigError):
    """Raised for values that no user of this server may set: a path, an address, or a value that
    its operator forbids."""


class TransitionRefused(Refused):
    """Raised for a transition that the table does not allow."""

    sentence = "Nothing changed: {}."

    def __init__(self, now: RunState, target: RunState):
        self.now, self.target = now, target
        super().__init__(f"a run that is {now} cannot become {target}")


class ResumedElsewhere(Refused):
    """Raised for a run that only the program that logs it can resume."""

    sentence = (
        "Nothing changed: another program logs this run, and resumes it by "
        "grove.init(id=..., resume='allow')."
    )


def check(now: RunState, target: RunState, *, tracked: bool = False) -> None:
    """Raises `TransitionRefused` unless `target` may follow `now`. A tracked run continues even
    after it has finished: its program decides."""
    if tracked and (now, target) == (FN, Q):
        return
    if target not in ALLOWED[now]:
        raise TransitionRefused(now, target)
