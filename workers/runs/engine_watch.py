"""Watch over one engine: what the operator allows it of time in `starting`, and of memory.

The memory of an engine is that of all its processes together. Their sum, with the memory that they
share counted once, is measured here; what one process may allocate is limited by the kernel as well
(`memory_limits`), so that none takes the machine's memory between two measurements. Pages of mapped
files do not count: the kernel takes them back when it needs room.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from django.conf import settings

from engine.events import vocabulary as ev
from workers.processes import family
from workers.runs.engine_process import EngineProcess

EVERY_SECONDS = 1.0
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_FREE_SPACE = (
    "the server's disk is full: have its operator free space below GROVE_VAR, then resume the run, "
    "which goes on from its last checkpoint"
)
_OUT_OF_MEMORY = re.compile(r"\bMemoryError\b|allocate memory|bad_alloc")
"""Words of a process that the kernel refused memory; a GPU's `OutOfMemoryError` is not one."""


class EngineWatch:
    """The limits of an engine that has just been started, or was adopted in this state."""

    def __init__(
        self,
        engine: EngineProcess,
        state: ev.RunState = ev.RunState.STARTING,
        waiting: str = "",
    ):
        self._engine = engine
        self._is_starting = state is ev.RunState.STARTING
        self._waiting = waiting
        self._measured = 0.0

    def observe(self, event: ev.Event) -> None:
        """Records a change of the run's state, or what it waits for."""
        if event.kind == "run.state":
            self._is_starting = event.payload["state"] == ev.RunState.STARTING
        elif event.kind == "run.waiting":
            self._waiting = event.payload["name"]

    def exceeded(self) -> str:
        """Returns which limit the engine exceeds now, as the cause of its end; empty if none."""
        if time.monotonic() - self._measured < EVERY_SECONDS:
            return ""
        self._measured = time.monotonic()
        return self._start_exceeded() or self._memory_exceeded()

    def _start_exceeded(self) -> str:
        if not self._is_starting or time.time() - self._engine.started <= settings.START_SECONDS:
            return ""
        waited = f", waiting for {self._waiting}" if self._waiting else ""
        return (
            f"it was still starting after {settings.START_SECONDS / 60:g} minutes{waited}; see the "
            "engine's log, or have the server's operator raise GROVE_START_MINUTES"
        )

    def _memory_exceeded(self) -> str:
        most = settings.ENGINE_MEMORY_BYTES
        used = memory_of(self._engine.parent_pid, most)
        if used <= most:
            return ""
        return f"its processes used {used >> 20} MiB of memory; {_allowed()}"


def memory_limits() -> dict[str, int]:
    """Returns the limits, as in `limited_exec`, of each process of an engine.

    There are none with a GPU, whose driver may map more than it ever uses, nor for a command of
    the operator, which may start the engine on a machine of another size and pass limits on.
    """
    has_gpu = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
    if has_gpu or os.environ.get("GROVE_ENGINE_COMMAND"):
        return {}
    return {"memory_bytes": settings.ENGINE_MEMORY_BYTES}


def explained(cause: str) -> str:
    """Returns the cause of a failure, with the remedy if memory or disk were used up."""
    if "GROVE_" in cause:
        return cause
    if _OUT_OF_MEMORY.search(cause):
        return f"{cause}; {_allowed()}"
    if _DISK_FULL.search(cause):
        return f"{cause}; {_FREE_SPACE}"
    return cause


def _allowed() -> str:
    return (
        f"an engine gets {settings.ENGINE_MEMORY_BYTES >> 20} MiB here: take smaller models, "
        "shorter answers or fewer processes (compute.generators_per_agent, sandbox.workers), or "
        "have the server's operator raise GROVE_ENGINE_MEMORY_MIB"
    )


def memory_of(pid: int, most: int) -> int:
    """Returns the bytes of memory of a process and its descendants. Where they are above `most`
    only because shared memory counts several times, it counts once."""
    processes = [process.pid for process in family(pid)]
    sizes = {one: _sizes(Path(f"/proc/{one}/status"), "RssAnon", "RssShmem") for one in processes}
    if sum(sizes.values()) <= most:
        return sum(sizes.values())
    # Each page divided by the number of its users; of other accounts' processes it is not readable.
    for one in processes:
        shares = _sizes(Path(f"/proc/{one}/smaps_rollup"), "Pss_Anon", "Pss_Shmem")
        sizes[one] = shares or sizes[one]
    return sum(sizes.values())


def _sizes(file: Path, *names: str) -> int:
    """Returns the sum of these lines of a file of /proc, in bytes; 0 if it has none."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError:  # it has just ended, or is another account's
        return 0
    fields = (line.split() for line in lines)
    needed = {f"{name}:" for name in names}
    return sum(int(words[1]) << 10 for words in fields if words and words[0] in needed)
