"""One slot of the sandbox: a zygote, its socket, and what to do when it dies.

Invariant: a reply that is not exactly what an honest child would have sent never yields a
value; a zygote that broke is replaced and its job run again, once.
"""

from __future__ import annotations

import itertools
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from engine.config import SandboxConfig
from engine.events import Verdict
from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.job import CallOutcome, Execution, Job
from engine.sandbox.stream import read_reply
from engine.sandbox.wire import HEAD, LENGTH

ZYGOTE = Path(__file__).with_name("zygote.py")
START_SECONDS = 20.0
GRACE_SECONDS = 10.0  # over the wall limit, for the zygote to kill, reap and answer
_numbers = itertools.count()


class _Broken(Exception):
    """The zygote died or does not answer."""


class Slot:
    """Not thread-safe; must be used by the thread that started it, and ends with that thread."""

    def __init__(self, config: SandboxConfig):
        self._config = config
        self._number = os.getpid() % (1 << 22) * 256 + next(_numbers) % 256
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._errors: IO[bytes] | None = None
        self.walls: tuple[str, ...] = ()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def run(self, job: Job) -> Execution:
        """Run one job; a broken zygote costs a restart and at most one repetition."""
        request = _request(job, self._config)
        for _ in range(2):
            if self._process is None:
                self.start()
            try:
                reply = self._ask(request)
            except (_Broken, OSError):
                cause = self._last_words()
                self.close()
                continue
            return read_reply(reply, len(job.calls), self._config.output_bytes)
        failure = CallOutcome(Verdict.SANDBOX_FAILURE, error=f"the sandbox died twice: {cause}")
        return Execution((failure,) * len(job.calls), 0.0)

    def start(self) -> None:
        """Start a zygote.

        Raises:
            SandboxUnavailable: it did not come up within START_SECONDS.
        """
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-S", "-P", "-B", str(ZYGOTE), str(self._number)],
            stdin=theirs, stdout=subprocess.DEVNULL, stderr=self._errors, cwd="/",
            env={"PYTHONHASHSEED": "0"}, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._socket = ours
        try:
            hello = self._receive(time.monotonic() + START_SECONDS)
        except (_Broken, OSError):
            hello = b"E"
        if hello[:1] != b"W":
            cause = hello[1:].decode() or self._last_words()
            self.close()
            raise SandboxUnavailable(
                f"the sandbox process did not start: {cause}; "
                f"check that {sys.executable} runs, that /proc is mounted, and that the host "
                "allows user namespaces or seccomp filters, or run as root"
            )
        self.walls = tuple(hello[1:].decode().split())

    def _last_words(self) -> str:
        """The end of what the zygote wrote to its stderr."""
        assert self._errors is not None
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 300))
        return self._errors.read().decode("utf-8", "replace").strip() or "it left no message"

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)  # takes its pid namespace along
            self._process.wait()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _ask(self, request: bytes) -> bytes:
        assert self._socket is not None
        deadline = time.monotonic() + self._config.wall_seconds + GRACE_SECONDS
        self._socket.settimeout(GRACE_SECONDS)
        self._socket.sendall(LENGTH.pack(len(request)) + request)
        reply = self._receive(deadline)
        if len(reply) < HEAD.size:
            raise _Broken
        return reply

    def _receive(self, deadline: float) -> bytes:
        return self._exactly(*LENGTH.unpack(self._exactly(LENGTH.size, deadline)), deadline)

    def _exactly(self, size: int, deadline: float) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size:
            if not select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise _Broken
            chunk = self._socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                raise _Broken
            data += chunk
        return bytes(data)


def _request(job: Job, config: SandboxConfig) -> bytes:
    # Version 2 shares no references: equal rows of an argument are separate objects.
    calls = [marshal.dumps(arguments, 2) for arguments in job.calls]
    limits = (config.output_bytes, config.cpu_seconds, config.wall_seconds, config.memory_mb << 20)
    return marshal.dumps((job.program, job.entry_point, calls, *limits))
