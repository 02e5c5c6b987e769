"""Shipper of one run's log into Postgres, starting after the last stored event.

Invariants:
- The database's `head_seq` is the only cursor. Line n of the log is the event of seq n, so
  shipping resumes at the offset after `head_seq` lines, regardless of who shipped before.
- What the log says of failures is stored without the paths of this server's files.
- The log never lags behind the database: lines that the disk lost (power failure) are written
  back from the database before an engine resumes, so no seq ever has two meanings.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import msgspec

from engine.events.log import FILE_NAME, EventReader
from engine.events.vocabulary import Event
from webapp.experiments.models import Run
from webapp.server_paths import relative_event
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Event as StoredEvent
from workers.metrics import count_stored

BATCH_EVENTS = 1000
NOTIFY_SECONDS = 0.1
"""Minimum seconds between notifications of watchers; every NOTIFY serialises commits."""
READ_BYTES = 1 << 20


class Shipper:
    """The only shipper of a run whose lease has the fencing token `fencing`."""

    def __init__(self, run_id: uuid.UUID, fencing: int, run_dir: Path):
        self.run_id = run_id
        self.fencing = fencing
        head = Run.objects.values_list("head_seq", flat=True).get(pk=run_id)
        self._reader = EventReader(run_dir, offset_after(run_dir / FILE_NAME, head))
        self._notified = 0.0

    def ship(self) -> list[Event]:
        """Stores the next batch and returns it; returns an empty list when all is stored.

        Raises:
            LeaseLost: another worker ships now.
        """
        offset = self._reader.offset
        events = [relative_event(event) for event in self._reader.read(BATCH_EVENTS)]
        if not events:
            return events
        full = len(events) == BATCH_EVENTS
        notify = not full or time.monotonic() - self._notified >= NOTIFY_SECONDS
        try:
            ingest(self.run_id, self.fencing, events, notify=notify)
        except BaseException:
            self._reader.offset = offset
            raise
        count_stored(events)
        if notify:
            self._notified = time.monotonic()
        return events

    def unshipped_bytes(self) -> int:
        """Returns how much of the log is not stored yet."""
        try:
            return max(0, self._reader.path.stat().st_size - self._reader.offset)
        except OSError:
            return 0


def offset_after(log: Path, lines: int, read_bytes: int = READ_BYTES) -> int:
    """Returns the byte offset at which the line after the first `lines` ones starts.

    Raises:
        ValueError: the log has fewer lines.
    """
    if lines == 0:
        return 0
    missing, offset = lines, 0
    with log.open("rb") as file:
        while chunk := file.read(read_bytes):
            newlines = chunk.count(b"\n")
            if newlines >= missing:
                position = -1
                for _ in range(missing):
                    position = chunk.index(b"\n", position + 1)
                return offset + position + 1
            missing -= newlines
            offset += len(chunk)
    raise ValueError(f"{log} has {lines - missing} lines, the database {lines}")


def restore_log(run_id: uuid.UUID, run_dir: Path) -> int:
    """Writes back what the database has and the log has lost; returns the number of lines.

    No engine may be running on `run_dir`.
    """
    head = Run.objects.values_list("head_seq", flat=True).get(pk=run_id)
    log = run_dir / FILE_NAME
    logged = _whole_lines(log)
    if logged >= head:
        return 0
    offset = offset_after(log, logged)
    lost = StoredEvent.objects.filter(run=run_id, seq__gt=logged).order_by("seq")
    with log.open("ab") as file:
        file.truncate(offset)  # a torn last line is among the lost ones
        for row in lost.iterator(chunk_size=BATCH_EVENTS):
            event = Event(row.seq, row.time.timestamp(), row.kind, row.tree, row.node, row.payload)
            file.write(msgspec.json.encode(event) + b"\n")
    return head - logged


def _whole_lines(log: Path) -> int:
    if not log.exists():
        return 0
    with log.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(READ_BYTES), b""))
