"""Handling of Ctrl-C, SIGTERM and SIGHUP as one orderly shutdown.

Invariant: the first of them interrupts any wait of a start; from then on they are ignored, so that
nothing cuts the shutdown short.
"""

from __future__ import annotations

import signal
from types import FrameType

SHUTDOWN_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ShutdownRequested(BaseException):
    """A signal requested that this process end."""


def raise_on_signals() -> None:
    """Makes the first signal raise `ShutdownRequested` in the main thread; ignores later ones."""

    def handler(number: int, frame: FrameType | None) -> None:
        ignore_signals()
        raise ShutdownRequested

    for number in SHUTDOWN_SIGNALS:
        signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignores the signals from now on."""
    for number in SHUTDOWN_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
