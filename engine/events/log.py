"""Append-only log of a run: one writer, and readers that follow it."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from engine.events.vocabulary import Event, Payload

FILE_NAME = "events.jsonl"


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


class EventLog:
    """Exclusive writer of a run's log; its owner's threads may append concurrently."""

    def __init__(self, run_dir: Path):
        """Opens the log, or creates it, and truncates a torn last line.

        Raises:
            RuntimeError: another process writes to it.
        """
        self.path = run_dir / FILE_NAME
        self._file = self.path.open("ab+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"{self.path} is being written by another engine; wait until it has ended, or give "
                "another run directory"
            ) from None
        self.seq = _repair(self._file)
        self.continued = self.seq > 0
        """Whether an earlier engine wrote to this log."""
        self._lock = threading.Lock()

    def append(self, payload: Payload, *, tree: int | None = None, node: int | None = None) -> int:
        """Writes one event, flushes it and returns its seq."""
        body = msgspec.to_builtins(payload)
        kind = body.pop("type")
        with self._lock:
            event = Event(self.seq + 1, time.time(), kind, tree, node, body)
            line = _encoder.encode(event) + b"\n"  # an event that cannot be encoded uses no seq
            self.seq += 1
            self._file.write(line)
            self._file.flush()
            self._written(event)
            return event.seq

    def _written(self, event: Event) -> None:
        """Called with every event once it is in the file, under the lock."""

    def sync(self) -> None:
        """Blocks until every line is on disk (fsync)."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Syncs the log and gives it up for another writer."""
        self.sync()
        self._file.close()


def _repair(file: Any) -> int:
    """Truncates a torn last line; returns the seq of the last whole one (0 for an empty log)."""
    end = file.seek(0, os.SEEK_END)
    tail = b""
    start = end
    while start > 0 and tail.count(b"\n") < 2:
        step = min(65536, start)
        start -= step
        file.seek(start)
        tail = file.read(step) + tail
    whole = tail.rfind(b"\n") + 1
    if whole < len(tail):
        file.truncate(start + whole)
        file.seek(0, os.SEEK_END)
    lines = tail[:whole].splitlines()
    return _decoder.decode(lines[-1]).seq if lines else 0


class LogDamaged(ValueError):
    """Raised for a log that was modified, or that a disk has lost in the middle."""


class EventReader:
    """Reader of whole lines after an offset; a torn last line is left for the next call.

    Raises:
        LogDamaged: a whole line is not an event; something other than an engine wrote it.
    """

    def __init__(self, run_dir: Path, offset: int = 0):
        self.path = run_dir / FILE_NAME
        self.offset = offset

    def read(self, limit: int = 1000, max_bytes: int = 1 << 20) -> list[Event]:
        """Returns at most `limit` new events, oldest first; empty if there are none yet.

        Raises:
            LogDamaged: the next line is no event; names its byte.
        """
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self.offset)
            chunk = file.read(max_bytes)
            if chunk and b"\n" not in chunk:
                chunk += file.readline()
        events: list[Event] = []
        for line in chunk.splitlines(keepends=True):
            if len(events) == limit or not line.endswith(b"\n"):
                break
            try:
                events.append(_decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if events:  # return those before it first
                    break
                raise LogDamaged(
                    f"{self.path}: the line at byte {self.offset} = {line[:40]!r} is no event "
                    f"({error}); start the run again as a fork of its last checkpoint"
                ) from None
            self.offset += len(line)
        return events


def read_all(run_dir: Path) -> Iterator[Event]:
    """Yields every event of a log, in order."""
    reader = EventReader(run_dir)
    while batch := reader.read():
        yield from batch
