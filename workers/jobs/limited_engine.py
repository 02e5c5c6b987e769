"""A command of the engine, or of another module, with limits, in a process tree that ends with this
worker.

Invariants: nothing that the command started outlives it, its `kill`, or the worker, however that
ends (`workers.runs.engine_parent`, whose holder is this thread). Its output goes to files, of which
only the ends are read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.config.deadlines import KILL
from workers.processes import family, kill_all
from workers.runs.engine_environment import engine_environment
from workers.runs.engine_parent import CHILD
from workers.runs.engine_process import ENGINE_PARENT, EXIT_UNKNOWN, limited
from workers.runs.recorded import exit_code
from workers.settings import work_directory

_TAIL_BYTES = 16_384


class LimitedEngine:
    """`python -m MODULE ARGUMENTS`, by default the engine's, whose output and temporary files go to
    `directory`."""

    def __init__(
        self,
        directory: Path,
        arguments: Sequence[str],
        limits: Mapping[str, int],
        environment: Mapping[str, str],
        *,
        module: str = "engine",
    ):
        """Starts it; `limits` as in `limited_exec`. The caller's thread has to outlive it."""
        self.directory = directory
        temporary = directory / "tmp"
        temporary.mkdir()
        alone = [sys.executable, "-I", "-S"]
        command = [
            *(*alone, str(CHILD), str(os.getpid()), str(int(signal.SIGQUIT)), "-", "0"),
            *(*alone, str(ENGINE_PARENT), str(directory)),
            *limited([sys.executable, "-m", module, *arguments], limits),
        ]
        with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as errors:
            self._parent = subprocess.Popen(
                command,
                cwd=work_directory(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                env={**engine_environment(), **environment, "TMPDIR": str(temporary)},
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Returns the exit status once everything has ended, minus the signal if one ended it; None
        before."""
        if self._parent.poll() is None:
            return None
        code = exit_code(self.directory)
        return EXIT_UNKNOWN if code is None else code

    def kill(self) -> None:
        """Kills everything, at once; returns when it has ended."""
        processes = family(self._parent.pid)
        self._parent.send_signal(signal.SIGQUIT)
        try:
            self._parent.wait(KILL.seconds)
        except subprocess.TimeoutExpired:
            kill_all(processes)
            self._parent.wait()

    def stdout(self) -> str:
        """Returns the end of its standard output."""
        return _tail(self.directory / "stdout")

    def stderr(self) -> str:
        """Returns the end of its standard error output."""
        return _tail(self.directory / "stderr")


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace").strip()
