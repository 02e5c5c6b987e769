"""Handling of Ctrl-C, SIGTERM and SIGHUP as one orderly shutdown.

Invariants: the first of them interrupts any wait of a start; from then on they are ignored, so that
nothing cuts the shutdown short. It is remembered, so that the errors which follow from it (a query
that was cut off) do not hide it, and an exception that a library swallowed is raised again.
"""

from __future__ import annotations

import signal
from types import FrameType

SHUTDOWN_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_first: signal.Signals | None = None


class ShutdownRequested(BaseException):
    """A signal requested that this process end."""


def first_signal() -> signal.Signals | None:
    """Returns the signal that requested the shutdown; None if none came."""
    return _first


def raise_on_signals() -> None:
    """Makes the first signal raise `ShutdownRequested` in the main thread; ignores later ones."""
    global _first
    _first = None

    def handler(number: int, frame: FrameType | None) -> None:
        global _first
        ignore_signals()
        _first = signal.Signals(number)
        raise ShutdownRequested

    for number in SHUTDOWN_SIGNALS:
        signal.signal(number, handler)


def raise_if_requested() -> None:
    """Raises `ShutdownRequested` if a signal came. Python drops what a handler raises in some
    places, such as a finaliser, and a library may catch it."""
    if _first is not None:
        raise ShutdownRequested


def ignore_signals() -> None:
    """Ignores the signals from now on."""
    for number in SHUTDOWN_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
