"""Handling of Ctrl-C, SIGTERM and SIGHUP as one orderly shutdown.

Invariant: the first of them interrupts any wait of a start; from then on they are ignored, so that
nothing cuts the shutdown short.
"""

from __future__ import annotations

import signal
from types import FrameType

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal requested that this process end."""


def raise_on_signals() -> None:
    """Makes the first signal raise `Ended` in the main thread; later ones are ignored."""

    def handler(number: int, frame: FrameType | None) -> None:
        ignore_signals()
        raise Ended

    for number in ENDINGS:
        signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignores the signals from now on."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
