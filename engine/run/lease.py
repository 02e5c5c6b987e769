"""Lease of an engine: it stops when its launcher no longer renews RUN_DIR/lease.

The process that launched the run touches the file. If the file is not touched for the agreed time,
the engine is requested to stop; after twice that time its process is ended by force.
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
    """Thread that checks the lease file's age, in wall-clock seconds, and calls `stop` when it
    exceeds `seconds`."""

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
        """Returns the seconds since the lease was last renewed, or since the start if never."""
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
                # The loop hangs in a call; without a launcher nothing else would end it.
                os._exit(3)
