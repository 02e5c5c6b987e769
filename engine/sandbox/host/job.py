"""What goes into the sandbox and what comes out.

Invariant: nothing that could be compared with ever enters the process that runs the program. A
`Trial` names both program and code tests; its slot sends them to different processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.problems.problem import Limits
from engine.sandbox.limits import SandboxCaps


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one job may take."""

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    output_bytes: int
    """Most bytes that is returned or printed for one test."""
    backstop_seconds: float = 0.0
    """Of CPU, by which the kernel itself ends a process. A program can read it, so it is the same
    for all runs of one; 0: as many as `cpu_seconds`."""
    read_chars: int = 1 << 62
    """Most characters of results that their owner reads; no process in the sandbox knows it."""


NO_LIMITS = Limits()
NO_CAPS = SandboxCaps()


def bounds(
    config: SandboxConfig,
    limits: Limits = NO_LIMITS,
    output_bytes: int = 0,
    caps: SandboxCaps = NO_CAPS,
) -> Bounds:
    """The bounds of a job, whether it runs one test or many: the problem's where it has any, and
    never above the caps; the settings were lowered to them before.

    A batch gets no more time than a test alone: where one test ends and the next begins inside
    a child, only the program could tell.
    """
    cpu = config.cpu_seconds
    if limits.seconds is not None:
        cpu = min(limits.seconds, caps.most_seconds(config))
    wall = config.wall_seconds * cpu / config.cpu_seconds
    memory_mb = min(limits.memory_mb or config.memory_mb, caps.most_memory_mb(config))
    return Bounds(
        cpu_seconds=cpu,
        wall_seconds=min(wall, caps.most_wall_seconds(config)),
        memory_bytes=memory_mb << 20,
        output_bytes=min(max(config.output_bytes, output_bytes), caps.most_output_bytes(config)),
    )


@dataclass(frozen=True, slots=True)
class Job:
    """One program and the calls of its entry point, made in order in one process.

    If they are made `alone`, those that one execution cannot make have no outcome: it makes
    the first one, and goes on while they take less than one time limit together.
    """

    program: str
    entry_point: str
    calls: tuple[tuple[Any, ...], ...]
    prelude: str = ""
    bounds: Bounds | None = None
    """None: those of the sandbox's settings."""
    alone: bool = False
    """Make each call in a clean process of its own, which has these bounds to itself."""

    @property
    def tests(self) -> int:
        return len(self.calls)


@dataclass(frozen=True, slots=True)
class Script:
    """One program as a script, and what it reads from stdin. Its value is what it prints."""

    program: str
    stdin: str
    prelude: str = ""
    bounds: Bounds | None = None

    @property
    def tests(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class Trial:
    """One program, and code that calls it from a process of its own. Values are True."""

    program: str
    entry_point: str
    codes: tuple[str, ...]
    prelude: str = ""
    bounds: Bounds | None = None

    @property
    def tests(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, slots=True)
class Check:
    """A checker, and its calls (given, expected, actual); runs where no program ever does."""

    program: str
    calls: tuple[tuple[Any, Any, Any], ...]
    entry_point: str = "check"
    prelude: str = ""
    bounds: Bounds | None = None

    @property
    def tests(self) -> int:
        return len(self.calls)


AnyJob = Job | Script | Trial | Check


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How one test ended. `verdict` None: it gave `value`, which is yet to be compared."""

    verdict: Verdict | None
    value: Any = None
    error: str = ""
    """Class, message and last traceback line of what the program raised."""
    loaded: bool = True
    """False: the program failed before any test began, and would do so before every test."""
    told: bool = True
    """False: no frame came for this test, and this is how the process ended."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One outcome per test of the job, in order. `seconds` is wall time in the sandbox."""

    outcomes: tuple[CallOutcome, ...]
    seconds: float
    strains: tuple[float, ...] = (0.0,)
    """Share of its time limit that each process used; 1 is all of it."""
    read_chars: int = 0
    """Characters of results that were read."""

    @property
    def strain(self) -> float:
        return max(self.strains)
