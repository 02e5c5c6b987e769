"""Names and positions of the texts, tables and histograms that a program logged.

Invariants: the caller holds the run's row lock, in the transaction that stores the events. A value
itself is stored once, in its event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.events.vocabulary import Event
from webapp.experiments.models import Run
from webapp.scalars import LONGEST_NAME
from webapp.telemetry.models import LoggedName, LoggedValue

KINDS = ("texts", "tables", "histograms", "images", "nonfinite")
"""Fields of `engine.events.vocabulary.MetricLogged` whose values are looked up by name."""
MOST_NAMES = 500
"""Names of these kinds that a run may have."""

Name = tuple[str, str]
"""Kind and name."""


def names_in(events: Iterable[Event]) -> dict[Name, list[int]]:
    """Returns the seqs of the events that hold a value of each name."""
    found: dict[Name, list[int]] = {}
    for event in events:
        if event.kind == "metric.logged":
            for kind in KINDS:
                for name in filter(_is_storable, event.payload.get(kind, ())):
                    found.setdefault((kind, name), []).append(event.seq)
    return found


def _is_storable(name: str) -> bool:
    """A column cannot hold every name that an engine of the site itself may write; the value is in
    its event all the same."""
    return len(name) <= LONGEST_NAME and "\0" not in name


def store_names(run: Run, events: Sequence[Event]) -> None:
    """Records which events hold values of which names."""
    found = names_in(events)
    if not found:
        return
    ids = _stored(run)
    missing = [
        LoggedName(run=run, kind=kind, name=name) for kind, name in found.keys() - ids.keys()
    ]
    for one in LoggedName.objects.bulk_create(missing):
        ids[one.kind, one.name] = one.pk
    LoggedValue.objects.bulk_create(
        LoggedValue(logged_id=ids[name], seq=seq) for name, seqs in found.items() for seq in seqs
    )


def store_config(run: Run, events: Iterable[Event]) -> None:
    """Merges the settings that a program reported into those of its tracked run."""
    reported = [
        event.payload["config"]
        for event in events
        if event.kind == "run.described" and "config" in event.payload
    ]
    if reported and run.tracked:
        for config in reported:
            run.tracking.config |= config
        run.tracking.save(update_fields=["config"])


def stored_names(run: Run) -> set[Name]:
    """Returns the names that the run has."""
    return set(_stored(run))


def _stored(run: Run) -> dict[Name, int]:
    rows = LoggedName.objects.filter(run=run).values_list("kind", "name", "pk")
    return {(kind, name): pk for kind, name, pk in rows}
