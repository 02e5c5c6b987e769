"""The whole stack in its own directory: what `make run` starts, as one object.

    with Stack(directory) as stack: ...

Invariant: after the block, no process that it started is alive.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from tests.helpers.waiting import eventually, patience
from workers.processes import family, has_ended, kill_all

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 300.0
STOP_SECONDS = 120.0


class Stack:
    """`manage.py up` on `var`. `environment` is added to the test's own, e.g. GROVE_ENGINE_COMMAND.

    It listens on a free port: `address` and `port` are known once it has started. With the
    `command` of an installed Grove, `environment` is the whole environment and sets or
    implies `var`.
    """

    def __init__(
        self,
        var: Path,
        environment: dict[str, str] | None = None,
        command: Sequence[str] = (),
        directory: Path | None = None,
    ):
        self.var = var
        self.port = 0
        self.address = ""
        self.output = var.with_name(var.name + ".out")
        self.command = command or [sys.executable, str(ROOT / "manage.py"), "up"]
        self.directory = directory
        ours = {n: v for n, v in os.environ.items() if n not in ("DATABASE_URL", "BROKER_URL")}
        self.environment = {
            **({} if command else {**ours, "GROVE_VAR": str(var)}),
            "GROVE_PORT": "0",
            **(environment or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self._seen: set[psutil.Process] = set()

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the stack and waits until it prints its sign-in link."""
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            eventually(self._has_started, "the sign-in link", READY_SECONDS)
        except AssertionError as error:
            self.stop()
            raise AssertionError(f"the stack did not start: {error}\n{self.said()}") from None
        (self.address,) = re.findall(r"Grove is at (\S+)", self.said())
        self.port = urlsplit(self.address).port or 443
        self.processes()

    def _has_started(self) -> bool:
        assert self.process is not None and self.process.poll() is None, "it has ended"
        return "Sign in" in self.said()

    def said(self) -> str:
        """Everything that it has printed."""
        return self.output.read_text() if self.output.exists() else ""

    def sign_in_link(self) -> str:
        """The one-time link that it printed at start; valid for one use."""
        return re.findall(r"works once\): (\S+)", self.said())[-1]

    def processes(self) -> list[psutil.Process]:
        """Every living process of the stack, itself included."""
        if self.process is not None:
            self._seen.update(family(self.process.pid))
        return [process for process in self._seen if not has_ended(process)]

    def find(self, word: str) -> psutil.Process:
        """The process of the stack nearest to its root with `word` in its command line."""
        for process in family(self.process.pid):
            with suppress(psutil.NoSuchProcess):  # it may end during the check
                if not has_ended(process) and any(word in part for part in process.cmdline()):
                    return process
        raise AssertionError(f"no process of the stack has {word!r} in its command line")

    def stop(self, number: signal.Signals = signal.SIGINT) -> list[psutil.Process]:
        """Ends the stack as Ctrl-C does; returns (and kills) the processes left behind."""
        if self.process is None:
            return []
        self.processes()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(STOP_SECONDS * patience())
        finally:
            left = self.processes()
            kill_all(left)
            self.process = None
        return left
