"""An event loop whose time also goes on when a test turns its clock.

With deadlines of hours, nothing ends because a machine is slow, and an hour costs no second.
"""

from __future__ import annotations

import asyncio
import threading

from tests.helpers.waiting import patience


class TurnedLoop(asyncio.SelectorEventLoop):
    """A loop that is `ahead` seconds ahead of the machine's clock."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class TurnedClock:
    """The clock of one loop, which `make_loop` makes in the thread that runs it."""

    def __init__(self) -> None:
        self._loop: TurnedLoop | None = None

    def make_loop(self) -> TurnedLoop:
        self._loop = TurnedLoop()
        return self._loop

    def turn(self, seconds: float) -> None:
        """Lets `seconds` pass in the loop. What it had received before is handled before, and what
        became due has been done when this returns."""
        loop, done = self._loop, threading.Event()
        assert loop is not None

        def ahead() -> None:
            loop.ahead += seconds
            then(5)

        def then(rounds: int) -> None:  # a timer may call back what ends a connection
            loop.call_soon(then, rounds - 1) if rounds else done.set()

        loop.call_soon_threadsafe(ahead)
        assert done.wait(60.0 * patience()), "the loop does not run"
