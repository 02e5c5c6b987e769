"""Import of files that grow: each record once, whatever cuts it off.

Invariants: the line of a record in the spool names the record, so line and position are kept by one
write; after a kill the spools say where each file is to be read on. A run whose spools are gone is
refused, never imported twice.

Waits: between two looks at the files, `PAUSE_SECONDS`; of `follow`, until it is interrupted, or
nothing was new for `idle` seconds.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from webapp.client.imports.whole import Target
from webapp.client.tracking import InitRefused, room, spool, values
from webapp.client.tracking.records import LAST_SECOND, encoded, whole_step
from webapp.client.tracking.runs import Run
from webapp.client.tracking.start import start

PAUSE_SECONDS = 1.0


class Record(Protocol):
    """Values and settings of a record; `number` counts the records of its file, from 1."""

    number: int
    time: float
    step: int
    values: dict[str, Any]
    config: dict[str, Any]


class Growing(Protocol):
    """A file whose `records` yields, at each call, those that were not yielded before."""

    path: Path

    def records(self) -> Iterator[Record]: ...


class _Source(msgspec.Struct):
    source: tuple[str, int] | None = None


@dataclass
class _Place:
    file: Growing
    done: int = 0
    problem: str = ""


class Copy:
    """Copy of the files of one directory as one run, which is started by the first new record."""

    def __init__(self, kind: str, directory: Path, name: str, group: str, target: Target,
                 spools: Path, alerts_after: float = LAST_SECOND):  # fmt: skip
        """`spools` is the folder of the spools, as of `grove.init(dir=...)`; records until
        `alerts_after`, in Unix seconds, raise no alert."""
        place = str(directory.resolve()).encode("utf-8", "surrogateescape")
        self.key = f"{kind}-{hashlib.sha256(place).hexdigest()[:16]}"
        self.directory, self._spools, self._target = directory, spools, target
        self._name, self._group, self._alerts_after = name, group, alerts_after
        self._before = positions(spools, self.key)
        # Also without a record: an import may have been cut off once its run was created.
        self._is_known = any(_spools_of(spools, self.key))
        self._places: dict[str, _Place] = {}
        self._names = room.Names()
        self.run: Run | None = None
        self.count = 0
        """Number of records that were copied."""

    @property
    def problems(self) -> list[str]:
        problems = [place.problem for place in self._places.values() if place.problem]
        if self._names.left_out:
            problems.append(f"{self.directory}: {room.LEFT_OUT}")
        return problems

    def add(self, file: Growing) -> None:
        """Adds a file of the directory; one that is there is left as it is."""
        if file.path.name not in self._places:
            done = self._before.get(file.path.name, 0)
            self._places[file.path.name] = _Place(file, done)

    def has(self, path: Path) -> bool:
        return path.name in self._places

    def advance(self) -> int:
        """Copies what is new; returns the number of records.

        Raises:
            InitRefused: the run cannot be started. OSError: the spool cannot be written.
        """
        before = self.count
        for name, place in sorted(self._places.items()):
            if place.problem:
                continue
            try:
                for record in place.file.records():
                    if record.number > place.done:
                        self._copy(name, record)
                        place.done = record.number
                        self.count += 1
            except ValueError as error:
                place.problem = str(error)
        return self.count - before

    def finish(self) -> bool:
        """Ends the run; returns whether the server has all of it."""
        if self.run is None:
            return True
        self.run.finish(quiet=True)
        return self.run.is_sent

    def _copy(self, name: str, record: Record) -> None:
        events = [*_events(record, self._names)]
        if not events:
            return
        self.run = self.run or self._started()
        at = record.time if 0 <= record.time <= LAST_SECOND else 0.0
        source = (name, record.number)
        self.run.append([encoded(kind, given, at, source=source) for kind, given in events])

    def _started(self) -> Run:
        resume = "allow" if self._is_known else "never"
        try:
            return start(
                self._target.project or None, self._target.entity, self._name, self.key, None,
                None, self._group, None, self._spools, None, resume, self._alerts_after,
            )  # fmt: skip
        except InitRefused as refusal:
            if resume == "never" and "has a run of this id" in str(refusal):
                raise InitRefused(
                    f"{self.directory}: it was imported as the run {self.key}, but {self._spools} "
                    "does not say how far: import it with the folder of then (--spools), or "
                    "delete that run"
                ) from None
            raise


def positions(spools: Path, key: str) -> dict[str, int]:
    """Returns the last record of each file that the spools of a run hold, sent or not."""
    last: dict[str, int] = {}
    decode = msgspec.json.Decoder(_Source).decode
    for path in _spools_of(spools, key):
        with path.open("rb") as file:
            for line in file:
                if b'"source":' not in line or not line.endswith(b"\n"):
                    continue
                if source := decode(line).source:
                    last[source[0]] = max(last.get(source[0], 0), source[1])
    return last


def _spools_of(spools: Path, key: str) -> Iterator[Path]:
    return spools.rglob(f"*-{key}-*{spool.SUFFIX}*")


def _events(record: Record, names: room.Names) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the events of a record; none if it says nothing."""
    if record.config:
        yield "run.described", {"config": values.plain(record.config)}
    if fields := names.admitted(values.sorted_values(record.values)):
        for part in values.parts(fields):
            yield "metric.logged", {"step": whole_step(record.step), **part}


def follow(look: Callable[[], Iterable[Copy]], *, idle: float = math.inf) -> None:
    """Copies what is new again and again; `look` returns all copies, with new files in them."""
    since = time.monotonic()
    while time.monotonic() - since < idle:
        if sum(copy.advance() for copy in look()):
            since = time.monotonic()
        time.sleep(PAUSE_SECONDS)
