"""Log of a training that watches its own events and adds those of health.

Invariants: the events of health are a function of the events before them in the surviving timeline,
so that a resumed run repeats none and misses none; whatever fails in here, the run goes on, without
warnings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from engine.events.log import EventLog, read_all
from engine.events.timeline import surviving_events
from engine.events.vocabulary import Event, HealthChanged, Payload
from engine.health.monitor import Monitor
from engine.health.setup import Setup

T = TypeVar("T")


class MonitoredLog(EventLog):
    """An `EventLog` that appends the changes of health after every `step.end`."""

    def __init__(self, run_dir: Path, setup: Setup):
        super().__init__(run_dir)
        self._run_dir, self._setup = run_dir, setup
        self._monitor: Monitor | None = Monitor(setup)

    def append(self, payload: Payload, *, tree: int | None = None, node: int | None = None) -> int:
        """Writes one event, and after a step's end those of health; returns the first one's seq."""
        seq = super().append(payload, tree=tree, node=node)
        if payload.__struct_config__.tag == "step.end":
            for change in self._changes():
                super().append(change)
        return seq

    def _changes(self) -> list[HealthChanged]:
        monitor = self._monitor
        return self._guarded(monitor.changes) or [] if monitor else []

    def _written(self, event: Event) -> None:
        if event.kind == "run.resumed":
            # What it voids is void here too; what is left is read again.
            self._monitor = self._guarded(self._read_again)
        elif monitor := self._monitor:
            self._guarded(lambda: monitor.apply(event))

    def _read_again(self) -> Monitor:
        return Monitor.of(surviving_events(read_all(self._run_dir)), self._setup)

    def _guarded(self, do: Callable[[], T]) -> T | None:
        try:
            return do()
        except Exception:  # a warning is never worth the run
            logging.getLogger(__name__).exception("health of %s is no longer watched", self.path)
            self._monitor = None
            return None
