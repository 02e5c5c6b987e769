"""Progress output of a start: each step and how long it took; plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from workers.local.signals import raise_if_requested


class Progress:
    """One line per step; on a terminal it is animated while the step lasts."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.doing = ""
        """The step at work, or the one that failed, in words that follow "while"; else empty."""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Shows `name` while the block runs, then the seconds that it took.

        Raises:
            ShutdownRequested: a signal came, and what it raised was lost.
        """
        self.doing = name[0].lower() + name[1:]
        raise_if_requested()
        with self.timed(name):
            yield
        self.doing = ""

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """As `step`, for what is done after a signal."""
        start = time.monotonic()
        if self.console.is_terminal:
            with self.console.status(f"{name} …"):
                yield
        else:
            self.say(f"{name} …")
            yield
        self.say(f"{name}: {time.monotonic() - start:.1f} s")

    def say(self, line: str) -> None:
        """Prints one line of text, without markup."""
        self.console.print(line, markup=False)
        self.console.file.flush()
