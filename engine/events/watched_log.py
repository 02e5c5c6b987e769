"""Log whose writer reads along: watchers fold its events, and add events of their own.

Invariants: what a watcher adds is a function of the events before it in the surviving timeline, so
a resumed run repeats none and misses none. Whatever fails in a watcher, the run goes on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from engine.events.log import EventLog, read_all
from engine.events.timeline import surviving_events
from engine.events.vocabulary import Event, Payload

T = TypeVar("T")


class Watcher(Protocol):
    """Fold of a log."""

    def apply(self, event: Event) -> None:
        """Folds one event."""
        ...

    def after_step(self) -> Sequence[Payload]:
        """Returns what it adds to the log after a `step.end`; called once after each of them. What
        it adds is applied as events too."""
        ...


class WatchedLog(EventLog):
    """An `EventLog` that appends what watchers add after every `step.end`, in their order."""

    def __init__(self, run_dir: Path, watchers: Mapping[str, Callable[[], Watcher]]):
        """`watchers` make each watcher, by what it watches: `health`."""
        super().__init__(run_dir)
        self._run_dir, self._make = run_dir, watchers
        self._watchers = {name: make() for name, make in watchers.items()}

    def append(self, payload: Payload, *, tree: int | None = None, node: int | None = None) -> int:
        """Writes one event, and after a step's end those of the watchers; returns the first one's
        seq."""
        seq = super().append(payload, tree=tree, node=node)
        if payload.__struct_config__.tag == "step.end":
            for name, watcher in list(self._watchers.items()):
                for added in self._guarded(name, watcher.after_step) or ():
                    super().append(added)
        return seq

    def _written(self, event: Event) -> None:
        if event.kind == "run.resumed":
            # What it voids is void here too; what is left is read again.
            self._read_again()
            return
        for name, watcher in list(self._watchers.items()):
            self._guarded(name, lambda watcher=watcher: watcher.apply(event))

    def _read_again(self) -> None:
        """Makes every watcher anew, from the events that are left."""
        if not self._make:
            return
        try:
            events = surviving_events(read_all(self._run_dir))
        except Exception:
            logging.getLogger(__name__).exception("%s cannot be read again", self.path)
            self._watchers = {}
            return
        self._watchers = {name: make() for name, make in self._make.items()}
        for name, watcher in list(self._watchers.items()):
            self._guarded(name, lambda watcher=watcher: _fold(watcher, events))

    def _guarded(self, name: str, do: Callable[[], T]) -> T | None:
        try:
            return do()
        except Exception:  # what it adds is never worth the run
            logging.getLogger(__name__).exception("%s of %s is no longer watched", name, self.path)
            self._watchers.pop(name, None)
            return None


def _fold(watcher: Watcher, events: Iterable[Event]) -> None:
    for event in events:
        watcher.apply(event)
        if event.kind == "step.end":
            watcher.after_step()  # the log has it
