"""Turns Ctrl-C, SIGTERM and SIGHUP into one orderly end.

Invariant: the first of them interrupts whatever a start is waiting for; from then on they change
nothing, so that the end itself is never cut short.
"""

from __future__ import annotations

import signal
from types import FrameType

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """Somebody wants this process to end."""


def raise_on_signals() -> None:
    """From now on the first signal raises `Ended` in the main thread; later ones are ignored."""

    def handler(number: int, frame: FrameType | None) -> None:
        ignore_signals()
        raise Ended

    for number in ENDINGS:
        signal.signal(number, handler)


def ignore_signals() -> None:
    """From now on they change nothing."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
