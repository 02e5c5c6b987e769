"""One supervised child process: started, restarted with a back-off when it dies, and ended.

Invariant: at most one process of a service is alive, and it dies with its holder.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workers.local.spawn import end, how_ended, kill_group, spawn

MIN_BACKOFF_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A child that lived this long has its back-off reset."""
LOG_LIMIT_BYTES = 10 << 20


@dataclass
class Service:
    """A child process with its log. `death_signal`: what it gets if this process is killed."""

    name: str
    command: Sequence[str]
    log: Path
    environment: dict[str, str]
    directory: Path
    close_seconds: float
    death_signal: signal.Signals
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    _started: float = 0.0
    _log_start: int = 0
    """Where the output of this process begins in `log`, in bytes."""
    _backoff: float = field(default=MIN_BACKOFF_SECONDS)
    _restart_at: float | None = None

    def start(self) -> None:
        """Starts the process; call it from the main thread."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as output:
            self._log_start = output.tell()
            self.process = spawn(
                self.command,
                death_signal=self.death_signal,
                output=output,
                environment=self.environment,
                directory=self.directory,
            )
        self._started = time.monotonic()
        self._restart_at = None

    def restart_if_dead(self) -> str | None:
        """Restarts it if it has died and its pause is over; returns a message for the operator."""
        if self.process is None or self.process.poll() is None:
            return None
        now = time.monotonic()
        if self._restart_at is None:
            kill_group(self.process.pid)
            steady = now - self._started > STEADY_SECONDS
            self._backoff = MIN_BACKOFF_SECONDS if steady else self._backoff
            self._restart_at = now + self._backoff
            self._backoff = min(2 * self._backoff, MAX_BACKOFF_SECONDS)
            return (
                f"The {self.name} ended ({how_ended(self.process.returncode)}; see {self.log}); "
                f"starting it again in {self._restart_at - now:.1f} s."
            )
        if now >= self._restart_at:
            self.restarts += 1
            self.start()
        return None

    def cause_of_end(self) -> str:
        """Returns why the ended process ended: its signal, else the last line that it wrote."""
        assert self.process is not None
        status = self.process.returncode
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines and status >= 0 else f"it ended {how_ended(status)}"

    def alive(self) -> bool:
        """Returns whether its process is alive."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Sends SIGTERM, waits, then SIGKILLs the group; does nothing when it is not running."""
        if self.process is None:
            return
        end(self.process, [(signal.SIGTERM, self.close_seconds)])
        kill_group(self.process.pid)
        self.process = None
