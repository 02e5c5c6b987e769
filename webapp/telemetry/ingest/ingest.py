"""Ingestion of a run's events into Postgres, each exactly once.

Invariants:
- One transaction per batch holds the run's row lock, so commit order is seq order and a reader
  of "seq > cursor" never skips a late commit.
- Only the worker whose fencing token holds the lease writes; repeated events are dropped, and a
  batch that would leave a gap is refused. So plain COPY cannot meet a duplicate.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import connection, transaction
from django.dispatch import Signal
from psycopg.types.json import Jsonb

from engine.events.vocabulary import Event
from webapp.experiments.models import Run
from webapp.experiments.scheduling.leases import lock_leased
from webapp.experiments.services import announce
from webapp.telemetry.ingest.logged import store_config, store_names
from webapp.telemetry.ingest.projections import FIELDS, moment, project
from webapp.telemetry.series.metrics import parts, recorder

_COPY = (
    "COPY telemetry_event (run_id, seq, time, kind, tree, node, payload) FROM STDIN (FORMAT BINARY)"
)
_TYPES = ("uuid", "int8", "timestamptz", "varchar", "int8", "int4", "jsonb")
# jsonb cannot hold NUL; a program that prints one is stored with the replacement character.
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")

events_stored = Signal()
"""Sent by `Run` with the `run` and the new `events`, in the transaction that stored them."""


class GapError(ValueError):
    """A batch that does not follow what is stored."""


class Unwritable(ValueError):
    """Raised when the payload of an event cannot be written as JSON."""

    def __init__(self, event: Event, reason: str):
        self.event = event
        super().__init__(reason)


@transaction.atomic
def ingest(run_id: uuid.UUID, fencing: int, events: Sequence[Event], *, notify: bool = True) -> int:
    """Stores a batch in seq order and returns the run's new head.

    `notify=False` omits the notification of watchers: a caller that ships more than ten batches a
    second requests it at most every 100 ms, and always with its last batch.

    Raises:
        LeaseLost: `fencing` no longer holds the lease; nothing was stored.
        GapError: events between the head and this batch are missing; nothing was stored.
        Unwritable: a payload cannot be written, for example too deep; nothing was stored.
    """
    run = lock_leased(run_id, fencing)
    new = [event for event in events if event.seq > run.head_seq]
    require_contiguous(run_id, run.head_seq, new)
    if new:
        _append(run, new)
        events_stored.send(sender=Run, run=run, events=new)
    if notify:
        announce(run_id)
    return run.head_seq


@transaction.atomic
def ingest_history(run: Run, events: Sequence[Event]) -> None:
    """Stores further events of a run that ended elsewhere, and that nothing else writes to. They
    happened long ago, so nobody is notified and no alert sees them.

    Raises:
        GapError, Unwritable: as `ingest`.
    """
    require_contiguous(run.pk, run.head_seq, events)
    _append(run, events)


def _append(run: Run, events: Sequence[Event]) -> None:
    _store(run, events)
    _update(run, events)


def require_contiguous(run_id: uuid.UUID, head: int, events: Sequence[Event]) -> None:
    """Raises `GapError` unless the events follow the one of seq `head`."""
    for expected, event in enumerate(events, start=head + 1):
        if event.seq != expected:
            raise GapError(
                f"run {run_id}: event {event.seq} cannot follow event {expected - 1}; "
                f"send again from seq {head + 1}"
            )


def _store(run: Run, events: Sequence[Event]) -> None:
    """Stores the events and their metrics, which are gathered while Postgres, which receives each
    event as it is sent, processes the previous ones."""
    series = recorder(run, events)
    for part in parts(events):
        if series:
            series.begin(part[0])
        with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.set_types(_TYPES)
            for event in part:
                copy.write_row(_values(run.pk, event))
                if series:
                    series.take(event)
        if series:
            series.store()
    store_names(run, events)


def _values(run_id: uuid.UUID, event: Event) -> tuple[Any, ...]:
    try:
        payload = msgspec.json.encode(event.payload)
    except (OverflowError, RecursionError, UnicodeError) as error:
        raise Unwritable(event, str(error)) from None
    if b"\\u0000" in payload:  # far faster than the expression, and rarely true
        payload = _NUL.sub(rb"\1\\ufffd", payload)
    return (
        run_id,
        event.seq,
        moment(event.time),
        event.kind,
        event.tree,
        event.node,
        Jsonb(payload, dumps=bytes),
    )


def _update(run: Run, events: Sequence[Event]) -> None:
    store_config(run, events)
    before = {name: getattr(run, name) for name in FIELDS}
    after = project(before, events)
    changed = [name for name in FIELDS if after[name] != before[name]]
    for name in changed:
        setattr(run, name, after[name])
    run.head_seq = events[-1].seq
    run.save(update_fields=[*changed, "head_seq"])
