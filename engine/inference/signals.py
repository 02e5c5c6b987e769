"""Signal handling of commands that search: started processes end, and results are kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.inference.local_team import LocalTeam


@contextmanager
def ended_alike() -> Iterator[None]:
    """Context in which SIGTERM raises KeyboardInterrupt too, so that all started processes end."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stopping(team: LocalTeam) -> Iterator[None]:
    """Context in which the first Ctrl-C requests the team to finish its open nodes and stop, and a
    second one, or SIGTERM, to abandon them. Only later signals have their previous handlers."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, _: object) -> None:
        if team.stopping or number == signal.SIGTERM:
            team.leave()
            restore()
        team.stopping = True

    for number in signals:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()
