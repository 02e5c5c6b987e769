"""One engine process, as the worker controls it: start or adopt it, renew its lease, end it.

Invariants:
- At most one engine runs per run directory: `start` refuses while one is alive there.
- An engine outlives a worker that dies; the next worker adopts it. Without a worker it stops
  by itself: the worker touches `RUN_DIR/lease`, and an engine whose lease is not touched for
  `deadlines.ENGINE_LEASE` stops.
- The engine inherits the variables of a list (`workers.runs.engine_environment`), and no other.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from engine.config import tracing
from engine.config.deadlines import ENGINE_LEASE, ENGINE_START, ENGINE_STOP, KILL
from engine.config.log_lines import is_json_line
from workers.processes import family, has_ended, kill_all, wait_ended
from workers.runs.engine_environment import engine_environment
from workers.runs.engine_parent import PID_FILE
from workers.runs.recorded import exit_code, process_id, start_time

EngineCommand = Sequence[str]
"""Program and arguments before `RUN_DIR --lease-seconds N`."""

TRAIN = "train"
DEFAULT_COMMAND: EngineCommand = (sys.executable, "-m", "engine", TRAIN)

ENGINE_PARENT = Path(__file__).with_name("engine_parent.py")
LIMITED_EXEC = Path(__file__).with_name("limited_exec.py")
LOG_FILE = "engine.log"
LEASE_FILE = "lease"

EXIT_FINISHED = 0
EXIT_REFUSED = 2
"""These settings cannot run, or are not those of the run that is to be resumed."""
EXIT_STOPPED = 3
EXIT_UNKNOWN = -9
"""The engine parent was killed too, so the exit status was lost."""

TRACEBACK = "Traceback (most recent call last):"


class EngineProcess:
    """A running or ended engine of one run directory. Use `start` or `adopt`."""

    def __init__(self, run_dir: Path, parent: psutil.Process, child: subprocess.Popen | None):
        self.run_dir = run_dir
        self._parent = parent
        self._child = child

    @classmethod
    def start(
        cls,
        run_dir: Path,
        command: EngineCommand = DEFAULT_COMMAND,
        limits: Mapping[str, int] | None = None,
    ) -> EngineProcess:
        """Starts an engine; its output is appended to `RUN_DIR/engine.log`. Each of its processes
        has these `limits`, as in `limited_exec`.

        Raises:
            RuntimeError: one is alive there already, or the process could not be started.
        """
        if cls.adopt(run_dir):
            raise RuntimeError(f"an engine is already running in {run_dir}")
        run_dir = run_dir.resolve()
        (run_dir / PID_FILE).unlink(missing_ok=True)
        touch_lease(run_dir)
        arguments = [
            *limited(command, limits or {}),
            str(run_dir),
            "--lease-seconds",
            f"{ENGINE_LEASE.seconds:g}",
        ]
        with (run_dir / LOG_FILE).open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(ENGINE_PARENT), str(run_dir), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**engine_environment(), **tracing.child_environment()},
                start_new_session=True,
            )
        process = cls(run_dir, psutil.Process(child.pid), child)
        process._await_pid_file()
        return process

    @classmethod
    def adopt(cls, run_dir: Path) -> EngineProcess | None:
        """Returns the engine that already runs in `run_dir`, or None.

        An engine whose parent has died cannot be adopted: it is killed.
        """
        run_dir = run_dir.resolve()
        parent = _process(run_dir, "pid")
        if parent is not None and str(ENGINE_PARENT) in parent.cmdline():
            return cls(run_dir, parent, None)
        if orphan := _process(run_dir, "engine"):
            kill_all([orphan])
            wait_ended([orphan], KILL.seconds)
        return None

    @property
    def pid(self) -> int:
        """The process id of the engine itself.

        Raises:
            RuntimeError: its parent's record of it was lost.
        """
        if (number := process_id(self.run_dir, "engine")) is None:
            raise RuntimeError(f"{self.run_dir / PID_FILE} names no engine")
        return number

    @property
    def parent_pid(self) -> int:
        """The process id of the engine's parent, of which all that it started descends."""
        return self._parent.pid

    @property
    def started(self) -> float:
        """The time at which the engine parent started, in Unix seconds."""
        return self._parent.create_time()

    def touch_lease(self) -> None:
        """Renews the engine's lease: a worker still watches it."""
        touch_lease(self.run_dir)

    def poll(self) -> int | None:
        """Returns the exit code once the engine and all that it started have ended, else None."""
        if self._child is not None:
            self._child.poll()  # reaps it
        if not has_ended(self._parent):
            return None
        if (code := exit_code(self.run_dir)) is not None:
            return code
        # The engine parent was killed. The kernel kills the engine too, but not instantly.
        if orphan := _process(self.run_dir, "engine"):
            kill_all([orphan])
            return None
        return EXIT_UNKNOWN

    def request_stop(self) -> None:
        """Sends SIGTERM: the engine makes a checkpoint and exits with `EXIT_STOPPED`."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._parent.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the engine and everything that it started, at once."""
        processes = family(self._parent.pid)
        with contextlib.suppress(psutil.NoSuchProcess):
            self._parent.send_signal(signal.SIGQUIT)
        alive = wait_ended(processes, KILL.seconds)
        kill_all(alive)
        wait_ended(alive, KILL.seconds)
        self.poll()

    def stop(self, seconds: float | None = None) -> int:
        """Sends SIGTERM, waits for a checkpoint (by default `deadlines.ENGINE_STOP`), then kills;
        returns the exit code."""
        self.request_stop()
        deadline = time.monotonic() + (ENGINE_STOP.seconds if seconds is None else seconds)
        while self.poll() is None and time.monotonic() < deadline:
            self.touch_lease()
            time.sleep(0.1)
        if self.poll() is None:
            self.kill()
        code = self.poll()
        return EXIT_UNKNOWN if code is None else code

    def _await_pid_file(self) -> None:
        seconds = ENGINE_START.seconds
        deadline = time.monotonic() + seconds
        while not (self.run_dir / PID_FILE).exists():
            ended = self.poll() is not None
            if ended or time.monotonic() > deadline:
                self.kill()
                late = f"nothing within {seconds:g} s; {ENGINE_START.remedy}"
                cause = first_cause(self.run_dir) if ended else late
                raise RuntimeError(f"the engine did not start: {cause}")
            time.sleep(0.01)


def limited(command: Sequence[str], limits: Mapping[str, int]) -> list[str]:
    """Returns the command with limits, as in `limited_exec`, for each of its processes."""
    if not limits:
        return list(command)
    return [sys.executable, "-I", "-S", str(LIMITED_EXEC), json.dumps(dict(limits)), *command]


def search_command(command: EngineCommand) -> EngineCommand:
    """Returns the command of an engine that searches, given `command` of one that trains: only the
    last word differs. A command with another last word is not ours and serves for both."""
    return [*command[:-1], "search", "--run-dir"] if command[-1] == TRAIN else command


def _process(run_dir: Path, role: str) -> psutil.Process | None:
    """Returns the live process that the pid file names as `pid` (engine parent) or `engine`."""
    number, started = process_id(run_dir, role), start_time(run_dir)
    if number is None:
        return None
    try:
        process = psutil.Process(number)
        # The pid may have been reused: the command line must name this directory. A process that
        # is about to end, or to exec its program, has none: then the creation time must fit.
        command_line = process.cmdline()
        is_ours = (
            str(run_dir) in command_line
            if command_line
            else started is not None and process.create_time() <= started + 1
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return process if is_ours and not has_ended(process) else None


def touch_lease(run_dir: Path) -> None:
    """Sets the lease's time to now."""
    (run_dir / LEASE_FILE).touch()


def first_cause(run_dir: Path) -> str:
    """Returns the last traceback's error at the end of `engine.log`, else its last line that is no
    JSON line of a log."""
    about_traces = (tracing.OFF, tracing.LOST)
    printed = [
        line
        for line in log_tail(run_dir).splitlines()
        if not is_json_line(line) and not any(one in line for one in about_traces)
    ]
    text = "\n".join(printed)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if TRACEBACK not in text:
        return lines[-1] if lines else "the engine ended without output"
    block = text.rpartition(TRACEBACK)[2].splitlines()[1:]
    # Frames are indented; the first line that is not indented names the error.
    return next((line.strip() for line in block if line and not line[0].isspace()), lines[-1])


def log_tail(run_dir: Path, size: int = 65536) -> str:
    """Returns the last `size` bytes of the engine's output."""
    try:
        with (run_dir / LOG_FILE).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - size))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
