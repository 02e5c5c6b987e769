"""What signals do to a command that searches: whatever was started is ended, what is there kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.inference.local_team import LocalTeam


@contextmanager
def ended_alike() -> Iterator[None]:
    """While the block lasts SIGTERM is a KeyboardInterrupt too: whatever was started is ended."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stopping(crew: LocalTeam) -> Iterator[None]:
    """While the block lasts the first Ctrl-C asks the crew to come to an end; a second one, or
    SIGTERM, to leave what is under way. Only the signal after that is the process's own again."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, _: object) -> None:
        if crew.stopping or number == signal.SIGTERM:
            crew.leave()
            restore()
        crew.stopping = True

    for number in signals:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()
