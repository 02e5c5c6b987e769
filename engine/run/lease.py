"""Ends an engine that nobody watches any more.

Whoever launched the run touches RUN_DIR/lease; when the file has not been touched for the agreed
time the engine is asked to stop, and ends by force if it does not within a second such time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

FILE_NAME = "lease"
CHECK_EVERY = 1.0


class LeaseGuard:
    """A thread that looks at the lease file's age, in wall-clock seconds, and calls `stop` when it
    is too old."""

    def __init__(self, run_dir: Path, seconds: float, stop: Callable[[], object]):
        self.file = run_dir / FILE_NAME
        self.seconds = seconds
        self.stop = stop
        self._started = time.time()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="lease-guard", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def age(self) -> float:
        """Seconds since the lease was last renewed, or since the start if it never was."""
        try:
            renewed = max(self._started, self.file.stat().st_mtime)
        except FileNotFoundError:
            renewed = self._started
        return time.time() - renewed

    def _watch(self) -> None:
        while not self._closed.wait(CHECK_EVERY):
            age = self.age()
            if age > self.seconds:
                self.stop()
            if age > 2 * self.seconds:
                # The loop hangs in a call; without a watcher nobody else would end it.
                os._exit(3)
