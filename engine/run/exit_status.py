"""How an engine ends, and what its log says of that, whatever it does: training or searching.

Invariant: no Ray here, which a search without a trainer does not pay for.
"""

from __future__ import annotations

import contextlib
from enum import IntEnum
from pathlib import Path

from engine.events.log import FILE_NAME, EventLog
from engine.events.vocabulary import ErrorRaised, LogLine, RunState, RunStateChanged


class ExitCode(IntEnum):
    """How the process of an engine ended."""

    FINISHED = 0
    FAILED = 1
    REFUSED = 2
    """These settings cannot run, or are not those of the run that is to go on."""
    STOPPED = 3
    """On request, or because nobody held the run any more; it can be resumed."""


def tell_refusal(run_dir: Path, error: Exception) -> None:
    """Put a refusal into the log of a run that is to go on; a run without a log stays without."""
    if not (run_dir / FILE_NAME).is_file():
        return
    with contextlib.suppress(RuntimeError):  # an engine is at work there, and the log is its own
        log = EventLog(run_dir)
        log_refusal(log, error)
        log.close()


def log_refusal(log: EventLog, error: Exception) -> None:
    """The run fails for what it was asked to do."""
    message = f"{type(error).__name__}: {error}"
    log.append(ErrorRaised(message))
    log.append(RunStateChanged(RunState.FAILED, message))


def walls_line(tier: str) -> LogLine:
    """What the log says of the sandbox; a warning where a program could harm this machine."""
    if tier != "none":
        return LogLine("info", f"programs run behind the {tier} tier of the sandbox's walls")
    message = (
        "sandbox.allow_unsafe: this host allows neither tier of walls, and programs of the models "
        "can read and write what this account can; do not share this machine"
    )
    return LogLine("warning", message)
