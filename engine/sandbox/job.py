"""What goes into the sandbox and what comes out.

Invariant: a job holds no expected value; nothing that could be compared with ever enters the
process that runs the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.events import Verdict


@dataclass(frozen=True, slots=True)
class Job:
    """One program and the calls of its entry point, made in order in one process."""

    program: str
    entry_point: str
    calls: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How one call ended. `verdict` None: it returned `value`, which is yet to be compared."""

    verdict: Verdict | None
    value: Any = None
    error: str = ""
    """Class, message and last traceback line of what the program raised."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One outcome per call of the job, in order. `seconds` is wall time in the sandbox."""

    outcomes: tuple[CallOutcome, ...]
    seconds: float
