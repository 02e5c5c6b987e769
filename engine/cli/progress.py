"""Progress of a command on stderr: a line that is redrawn on a terminal, lines in a log elsewhere.

Without a terminal a line is written every `every` seconds, whether there is news or not, so that a
log shows that the command works and when it will end.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Self, TextIO

LINE_SECONDS = 30.0


class Progress:
    """Context manager; `update` and `count` are safe from any thread."""

    def __init__(
        self, activity: str, every: float = LINE_SECONDS, stream: TextIO | None = None
    ) -> None:
        """`stream` is stderr unless given; `every` is in seconds."""
        from rich.console import Console  # commands without progress must not pay for it

        self._stream = stream or sys.stderr
        console = Console(file=self._stream)
        self._status = console.status(activity) if console.is_terminal else None
        self._every = every
        self._activity, self._text = activity, ""
        self._done = self._total = 0
        self._began = time.monotonic()
        self._closed = threading.Event()
        self._writer = threading.Thread(target=self._write_lines, name="progress", daemon=True)

    def begin(self, activity: str, total: int = 0) -> None:
        """Begins another activity of at most `total` samples; 0 if they are not counted."""
        self._activity, self._text = activity, ""
        self._done, self._total = 0, total
        self._began = time.monotonic()
        self.update(activity)

    def update(self, text: str) -> None:
        """Replaces the text that says how far the activity is."""
        self._text = text
        if self._status:
            self._status.update(text)

    def count(self, samples: int = 1) -> None:
        """Counts samples that are done."""
        self._done += samples

    def line(self) -> str:
        """Returns activity, samples done, samples per second, time left, and the last text."""
        parts = [self._activity]
        seconds = time.monotonic() - self._began
        if self._total:
            rate = self._done / seconds if seconds else 0.0
            parts.append(f"{self._done:,} of at most {self._total:,} samples")
            parts.append(f"{rate:.2f} samples/s")
            left = (self._total - self._done) / rate if rate else None
            parts.append("time left unknown" if left is None else f"{duration(left)} left")
        else:
            parts.append(f"for {duration(seconds)}")
        if self._text and self._text != self._activity:
            parts.append(self._text)
        return ", ".join(parts)

    def _write_lines(self) -> None:
        while not self._closed.wait(self._every):
            print(self.line(), file=self._stream, flush=True)

    def __enter__(self) -> Self:
        if self._status:
            self._status.start()
        else:
            self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._status:
            self._status.stop()
        else:
            self._writer.join()


def duration(seconds: float) -> str:
    """Returns whole hours, minutes and seconds, the two largest that are not 0."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
