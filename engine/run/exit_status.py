"""Exit status of an engine, in training and search, and the log entries of its end.

Invariant: this module does not import Ray, which a search without a trainer does not need.
"""

from __future__ import annotations

import contextlib
from enum import IntEnum
from pathlib import Path

from engine.events.log import FILE_NAME, EventLog
from engine.events.vocabulary import ErrorRaised, LogLine, RunState, RunStateChanged


class ExitCode(IntEnum):
    """Exit status of an engine's process."""

    FINISHED = 0
    FAILED = 1
    REFUSED = 2
    """The settings cannot run, or are not those of the run to resume."""
    STOPPED = 3
    """Stopped on request, or because the lease expired; the run can be resumed."""


def report_refusal(run_dir: Path, error: Exception) -> None:
    """Records a refusal in the existing log of a run; creates no log."""
    if not (run_dir / FILE_NAME).is_file():
        return
    with contextlib.suppress(RuntimeError):  # another engine runs there and holds the log
        log = EventLog(run_dir)
        log_refusal(log, error)
        log.close()


def log_refusal(log: EventLog, error: Exception) -> None:
    """Records that the run failed because its request was refused."""
    message = f"{type(error).__name__}: {error}"
    log.append(ErrorRaised(message))
    log.append(RunStateChanged(RunState.FAILED, message))


def isolation_line(tier: str) -> LogLine:
    """Returns the log line of the sandbox's tier; a warning if a program could harm this
    machine."""
    if tier != "none":
        return LogLine("info", f"programs run behind the {tier} tier of the sandbox's walls")
    message = (
        "sandbox.allow_unsafe: this host allows neither tier of walls, and programs of the models "
        "can read and write what this account can; do not share this machine"
    )
    return LogLine("warning", message)
