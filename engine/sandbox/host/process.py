"""Owner's end of one zygote.

Invariant: whatever a zygote or its child does, `wait` returns within the given wall time and a
fixed grace; a zygote that does not reply as it should raises `ZygoteFailed`, and must be closed.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from engine.config.deadlines import SANDBOX_GRACE, SANDBOX_NICENESS, SANDBOX_START
from engine.sandbox.guest.wire import HEAD, MAX_MESSAGE, ORDER, READY, STOP
from engine.sandbox.host.errors import SandboxUnavailable
from engine.sandbox.host.job import Bounds

ZYGOTE = Path(__file__).parents[1] / "guest" / "zygote.py"


class ZygoteFailed(Exception):
    """The zygote died or does not reply."""


class ZygoteSilent(ZygoteFailed):
    """The zygote did not reply before the deadline."""


class ChildExit(NamedTuple):
    """How a child ended, in the codes of wire.py."""

    reason: int
    code: int
    seconds: float
    cpu_seconds: float
    setup_error: str
    """Why its walls could not be set up; empty if they were."""
    children: tuple[ChildExit, ...] = ()
    """Exits of the children of a FORK_PER_CALL, in order."""


class Zygote:
    """A running zygote. Ends with the thread that created it, which alone may use it."""

    def __init__(self, number: int, allow_unsafe: bool = False, start_seconds: float | None = None):
        """Starts the process.

        Raises:
            SandboxUnavailable: it did not start, or not within `start_seconds` (by default
                `deadlines.SANDBOX_START`).
        """
        self._grace = SANDBOX_GRACE.seconds
        start_seconds = SANDBOX_START.seconds if start_seconds is None else start_seconds
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-S", "-P", "-B", str(ZYGOTE), str(number),
             "unsafe" if allow_unsafe else "safe"],
            stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=self._errors, cwd="/",
            # One arena: one per thread would each take 64 MiB of what a program may map.
            env={"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "1"}, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        _copy_niceness(self._process.pid)
        try:
            hello = self._receive(time.monotonic() + start_seconds)
        except ZygoteSilent:
            self.close()
            raise SandboxUnavailable(
                f"the sandbox process did not start within {start_seconds:g} s; "
                f"use fewer sandbox.workers, or {SANDBOX_START.remedy}"
            ) from None
        except (ZygoteFailed, OSError):
            hello = b"E"
        if hello[:1] != b"W":
            cause = hello[1:].decode("utf-8", "replace") or self.stderr_tail()
            self.close()
            raise SandboxUnavailable(
                f"the sandbox process did not start: {cause}; "
                f"check that {sys.executable} runs, that /proc is mounted, and that the host "
                "allows user namespaces, or Landlock and seccomp filters"
            )
        self.tier, *walls = hello[1:].decode().split()
        self.walls = tuple(walls)

    @property
    def pid(self) -> int:
        return self._process.pid

    def order(self, kind: int, bounds: Bounds, file_bytes: int, files: Sequence[int]) -> None:
        """Starts one job; `files` are the descriptors that its kind needs (wire.py)."""
        backstop = max(bounds.backstop_seconds, bounds.cpu_seconds)
        message = ORDER.pack(
            kind, bounds.cpu_seconds, bounds.wall_seconds, bounds.memory_bytes, file_bytes, backstop
        )
        try:
            socket.send_fds(self._socket, [message], list(files))
        except OSError:
            raise ZygoteFailed from None

    def stop(self) -> None:
        """Ends the current job; `wait` still has to be called."""
        try:
            self._socket.send(STOP)
        except OSError:
            raise ZygoteFailed from None

    def wait(self, wall_seconds: float) -> ChildExit:
        """Waits for the current job to end, and `deadlines.SANDBOX_GRACE` beyond the wall limit for
        the zygote to kill, reap and reply. Raises `ZygoteFailed`."""
        reply = self._receive(time.monotonic() + wall_seconds + self._grace)
        if len(reply) < HEAD.size:
            raise ZygoteFailed
        return _parse_reply(reply[: HEAD.size], reply[HEAD.size :])

    def stderr_tail(self) -> str:
        """Returns the last 300 bytes of the zygote's stderr."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 300))
        return self._errors.read().decode("utf-8", "replace").strip() or "it left no message"

    def close(self) -> None:
        """Kills the zygote and all that it runs, and waits until it is gone."""
        self._socket.close()
        self._process.send_signal(signal.SIGKILL)  # takes its pid namespace along
        self._process.wait()
        self._errors.close()

    def _receive(self, deadline: float) -> bytes:
        left = max(0.0, deadline - time.monotonic())
        if not math.isfinite(left) or not select.select([self._socket], [], [], left)[0]:
            raise ZygoteSilent
        try:
            data = self._socket.recv(MAX_MESSAGE)
        except OSError:
            raise ZygoteFailed from None
        if not data:
            raise ZygoteFailed
        return data


def _copy_niceness(session: int) -> None:
    """Gives a session the niceness of this process, where the kernel divides cores among sessions
    (autogroup): between sessions the niceness of processes has no effect."""
    if not (niceness := os.nice(0)):
        return
    until = time.monotonic() + SANDBOX_NICENESS.seconds
    with suppress(OSError):  # a kernel without autogroup, or still too many writes
        while True:
            try:
                Path(f"/proc/{session}/autogroup").write_text(str(niceness))
                return
            except BlockingIOError:  # all users together may do this ten times a second
                if time.monotonic() > until:
                    raise
            time.sleep(0.1)


def _parse_reply(head: bytes, report: bytes) -> ChildExit:
    if report[:1] != READY:
        setup_error = report.decode("utf-8", "replace") or "it left no message"
        return _child_exit(head, setup_error)
    size = len(READY) + HEAD.size
    children = [report[at + 1 : at + size] for at in range(1, len(report) - HEAD.size, size)]
    return _child_exit(head, "", tuple(_child_exit(one, "") for one in children))


def _child_exit(head: bytes, setup_error: str, children: tuple[ChildExit, ...] = ()) -> ChildExit:
    reason, code, seconds, cpu_seconds = HEAD.unpack(head)
    return ChildExit(reason, code, seconds, cpu_seconds, setup_error, children)
