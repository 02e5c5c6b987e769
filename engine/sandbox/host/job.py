"""Jobs of the sandbox, and their outcomes.

Invariant: no expected value ever enters the process that runs the program. A `Trial` holds both
program and code tests; its slot sends them to different processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.sandbox.cases import Limits
from engine.sandbox.limits import SandboxCaps


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one job."""

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    output_bytes: int
    """Most bytes that a program returns or prints for one test."""
    backstop_seconds: float = 0.0
    """Seconds of CPU after which the kernel itself ends a process. A program can read this limit,
    so it is the same for all its runs; 0: equal to `cpu_seconds`."""
    read_chars: int = 1 << 62
    """Most characters of results that the owner reads; no process in the sandbox knows it."""


NO_LIMITS = Limits()
NO_CAPS = SandboxCaps()


def bounds(
    config: SandboxConfig,
    limits: Limits = NO_LIMITS,
    output_bytes: int = 0,
    caps: SandboxCaps = NO_CAPS,
) -> Bounds:
    """Returns the bounds of a job, whether it runs one test or many: the problem's where it has
    any, and never above the caps, to which the settings are already lowered.

    A batch gets no more time than a test alone: only the program could report where inside a child
    one test ends and the next begins.
    """
    cpu = config.cpu_seconds
    if limits.seconds is not None:
        cpu = min(limits.seconds, caps.max_seconds(config))
    wall = config.wall_seconds * cpu / config.cpu_seconds
    memory_mb = min(limits.memory_mb or config.memory_mb, caps.max_memory_mb(config))
    return Bounds(
        cpu_seconds=cpu,
        wall_seconds=min(wall, caps.max_wall_seconds(config)),
        memory_bytes=memory_mb << 20,
        output_bytes=min(max(config.output_bytes, output_bytes), caps.max_output_bytes(config)),
    )


@dataclass(frozen=True, slots=True)
class Job:
    """One program and the calls of its entry point, made in order in one process.

    With `fork_per_call`, calls that one execution does not reach have no outcome: it makes the
    first one, and continues while all together take less than one time limit.
    """

    program: str
    entry_point: str
    calls: tuple[tuple[Any, ...], ...]
    prelude: str = ""
    bounds: Bounds | None = None
    """None means those of the sandbox's settings."""
    fork_per_call: bool = False
    """Whether each call runs in its own clean process, to which these bounds apply."""

    @property
    def tests(self) -> int:
        return len(self.calls)


@dataclass(frozen=True, slots=True)
class Script:
    """One program as a script, and its stdin. Its value is its output."""

    program: str
    stdin: str
    prelude: str = ""
    bounds: Bounds | None = None

    @property
    def tests(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class Trial:
    """One program, and code tests that call it from another process. Values are True."""

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


class TraceFrame(NamedTuple):
    """One frame of a traceback, as the program's process reports it."""

    line: int
    """Line of the program, from 1."""
    name: str
    """Name of the function, or `<module>`."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Outcome of one test. With `verdict` None it returned `value`, which is not compared yet."""

    verdict: Verdict | None
    value: Any = None
    error: str = ""
    """Class, message and last traceback line of the program's exception."""
    loaded: bool = True
    """False if the program failed before any test began, and would do so before every test."""
    reported: bool = True
    """False if no frame came for this test; the outcome then follows from how the process ended."""
    frames: tuple[TraceFrame, ...] = ()
    """The program's last frames in the exception's traceback, outermost first."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One outcome per test of the job, in order. `seconds` is wall time in the sandbox."""

    outcomes: tuple[CallOutcome, ...]
    seconds: float
    strains: tuple[float, ...] = (0.0,)
    """Share of its time limit that each process used; 1 is the whole limit."""
    read_chars: int = 0
    """Characters of results that were read."""

    @property
    def strain(self) -> float:
        """Largest share of a time limit that one of its processes used."""
        return max(self.strains)
