"""Health of the runs that other programs log, judged while their events are stored.

Invariants: what is added to a log follows from its events alone, however they are divided into
batches, as the state between two batches is stored in the transaction that stores their events; so
neither a restart nor a batch that is sent again loses or repeats a warning. Whatever fails here,
the events are stored without it. The caller holds the run's row lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import msgspec
from django.db import transaction

from engine.events.vocabulary import Event, HealthChanged
from engine.health.tracked import State, TrackedMonitor
from webapp.experiments.models import Run
from webapp.telemetry.models import TrackedHealth

logger = logging.getLogger(__name__)
LARGEST_STATE = 4 * 2**20
"""Bytes of stored state; trees that never end would grow it without bound."""
_STATE = msgspec.msgpack.Decoder(State)


def judged(run: Run, events: Sequence[Event]) -> list[Event]:
    """Returns new events of a tracked run together with the health warnings that open and close
    with them, numbered from the run's head on."""
    completed = list(events)
    try:
        if any(TrackedMonitor.reads(event) or TrackedMonitor.ends(event) for event in events):
            with transaction.atomic():
                completed = _judged(run, events)
    except Exception:  # a warning is never worth an event
        logger.exception("health of run %s was not judged", run.pk)
    return [
        event if event.seq == seq else msgspec.structs.replace(event, seq=seq)
        for seq, event in enumerate(completed, run.head_seq + 1)
    ]


def _judged(run: Run, events: Sequence[Event]) -> list[Event]:
    stored = TrackedHealth.objects.filter(run=run).values_list("state", flat=True).first()
    if stored is None and not any(map(TrackedMonitor.reads, events)):
        return list(events)
    monitor = TrackedMonitor(_STATE.decode(stored) if stored else None)
    result = list(_with_warnings(monitor, events))
    _save(run, monitor)
    return result


def _with_warnings(monitor: TrackedMonitor, events: Sequence[Event]) -> Iterator[Event]:
    for event in events:
        changes = [_event(change, event.time) for change in monitor.apply(event)]
        if monitor.ends(event):
            yield from (*changes, event)  # readers stop at a run's end
        else:
            yield from (event, *changes)


def _event(change: HealthChanged, time: float) -> Event:
    body = msgspec.to_builtins(change)
    return Event(0, time, body.pop("type"), None, None, body)


def _save(run: Run, monitor: TrackedMonitor) -> None:
    state = msgspec.msgpack.encode(monitor.saved())
    if len(state) > LARGEST_STATE:
        monitor.forget_trees()
        state = msgspec.msgpack.encode(monitor.saved())
    TrackedHealth.objects.bulk_create(
        [TrackedHealth(run=run, state=state)],
        update_conflicts=True,
        unique_fields=["run"],
        update_fields=["state"],
    )
