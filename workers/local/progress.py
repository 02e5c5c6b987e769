"""Says what a start is doing, and how long it took; plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class Progress:
    """One line per step; on a terminal it moves while the step lasts."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(highlight=False, soft_wrap=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Show `name` while the block runs, then the seconds that it took."""
        start = time.monotonic()
        if self.console.is_terminal:
            with self.console.status(f"{name} …"):
                yield
        else:
            self.say(f"{name} …")
            yield
        self.say(f"{name}: {time.monotonic() - start:.1f} s")

    def say(self, line: str) -> None:
        """One line of text, as it is."""
        self.console.print(line, markup=False)
        self.console.file.flush()
