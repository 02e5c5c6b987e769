"""Progress output of a start: each step and how long it took; plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class Progress:
    """One line per step; on a terminal it is animated while the step lasts."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(highlight=False, soft_wrap=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Shows `name` while the block runs, then the seconds that it took."""
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
