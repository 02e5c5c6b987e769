"""Events of external engines: validated, then stored like those of the site's own workers.

Invariants: no event that a reader of the log could fail on is stored: each payload is complete, but
for figures that were not measured (`figures`), and of its kind, events of a tree name it, and trees
have no cycles. Sending a batch again changes nothing, even after the run has ended.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import DataError, transaction

from engine.config import bounded_json
from engine.config.errors import printable
from engine.config.names import name_fault
from engine.events.vocabulary import KINDS, Event, RunState
from webapp.experiments import external_engines
from webapp.experiments.models import Run
from webapp.experiments.scheduling.queue import events_of
from webapp.experiments.tracked_runs import LAST_SECOND, count_added, head_of
from webapp.projects.allowances import refuse_events
from webapp.rest.json_types import with_integers
from webapp.rest.problem_details import Invalid
from webapp.telemetry.ingest.figures import (
    FIGURE_KINDS,
    TOKEN_LISTS,
    WITH_DEFAULTS,
    without_gaps,
)
from webapp.telemetry.ingest.health import judged
from webapp.telemetry.ingest.ingest import (
    GapError,
    Unwritable,
    ingest,
    ingest_history,
    require_contiguous,
)
from webapp.telemetry.ingest.logged_checks import refuse_bad_values, refuse_too_many
from webapp.telemetry.ingest.tree_checks import refuse_broken_trees

MOST_EVENTS = 5000
_BOUNDS = {"seq": (1, 2**63 - 1), "tree": (0, 2**63 - 1), "node": (0, 2**31 - 1)}
NAMING = ("agent", "problem")
NAMING_MANY = ("agents", "shared_with", "node_share", "reward_by_agent")
"""Fields of payloads whose values, items or keys are names of agents or ids of problems."""
PAYLOAD_BOUNDS = {"step": 2**31 - 1, "steps": 2**31 - 1, "deadline_seconds": LAST_SECOND}
"""Largest value of each field that the database stores in a column; the smallest is 0."""


class Gap(Exception):
    """Raised when events between the stored log and the batch are missing."""

    def __init__(self, expected: int, message: str):
        self.expected = expected
        super().__init__(message)


class Line(msgspec.Struct):
    """One line of the log, whose payload is decoded by its kind."""

    seq: int
    time: float
    kind: str
    tree: int | None
    node: int | None
    payload: msgspec.Raw


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    """An engine's request: lines of its log, in order; an empty batch renews the lease. The
    process that logs a tracked run names its `session`."""

    events: list[Line]
    session: uuid.UUID | None = None


_READERS = {kind: msgspec.json.Decoder(payload) for kind, payload in KINDS.items()}
_CONSTANTS = (b"NaN", b"Infinity")
_BATCH = msgspec.json.Decoder(Batch)


class WrongSession(Exception):
    """Raised when another process writes to the tracked run; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The validated events of a request, payloads completed with their defaults."""

    events: list[Event]
    session: uuid.UUID | None = None


def read_batch(body: bytes) -> Sent:
    """Returns what a request's body holds.

    Raises:
        Invalid: it is no batch, or one of its events cannot be stored; names it and the reason.
    """
    try:
        batch = _batch(body)
    except (msgspec.DecodeError, RecursionError) as error:
        what, _, where = printable(str(error)).partition(" - at ")
        raise Invalid(where.strip("`").removeprefix("$.") or "body", "", what) from None
    events = batch.events
    if len(events) > MOST_EVENTS:
        raise Invalid("events", len(events), f"send at most {MOST_EVENTS} at once")
    return Sent([checked(index, line) for index, line in enumerate(events)], batch.session)


def _batch(body: bytes) -> Batch:
    try:
        return _decoded(_BATCH, body)
    except msgspec.DecodeError as refusal:
        if not any(word in body for word in _CONSTANTS):
            raise
        # Python's json writes NaN and Infinity, which JSON does not know.
        try:
            data = bounded_json.loads(body, parse_constant=lambda _: None)
        except ValueError:
            raise refusal from None
        return _decoded(_BATCH, msgspec.json.encode(data))


def store_batch(run_id: uuid.UUID, sent: Sent) -> Run:
    """Stores the new events of the batch, with the health warnings of a tracked run that open and
    close with them, applies the state that they report, renews the lease.

    Raises:
        NotExternalRun: the site's own engine has the run. Ended: the run has ended, and these
            events are new. WrongSession: another process logs the run.
        Gap: events before these are missing.
        Invalid: the database cannot store one of them, or a node cannot be in its tree.
        AllowanceSpent: the workspace's runs have reached their limit of events.
    """
    events = sent.events
    try:
        with transaction.atomic():
            run = external_engines.locked(run_id)
            _refuse_session(run, sent.session)
            head = head_of(run)
            new = [event for event in events if event.seq > head]
            if run.lease_expires is None and new:
                raise external_engines.Ended
            if new:
                stored = events_of(run.project.workspace_id)
                refuse_events("events", len(new), stored, len(new))
            if run.lease_expires is not None:
                refuse_broken_trees(run_id, events, head)
                refuse_too_many(run, new, len(events) - len(new))
                require_contiguous(run_id, head, new)
                ingest(run_id, run.fencing, _completed(run, new))
                external_engines.record_contact(run, _last_state(new))
    except GapError as gap:
        raise Gap(head + 1, str(gap)) from None
    except Unwritable as unwritable:
        payload = unwritable.event.payload
        index = next(index for index, event in enumerate(events) if event.payload is payload)
        raise Invalid(f"events.{index}.payload", "", printable(str(unwritable))) from None
    except (DataError, OverflowError, ValueError) as error:
        raise Invalid("events", "", f"they cannot be stored: {printable(str(error))}") from None
    return Run.objects.get(pk=run_id)


def _completed(run: Run, new: list[Event]) -> list[Event]:
    """Returns the events as they are stored: those of a tracked run with what the server adds."""
    if not run.tracked:
        return new
    completed = judged(run, new)
    if len(completed) > len(new):
        count_added(run, len(completed) - len(new))
    return completed


def store_history(run: Run, events: Sequence[Event], where: str) -> None:
    """Stores the next events of the log of a run that ended elsewhere, which are checked as those
    of an external engine. The caller has just created the run; `where` names the events.

    Raises:
        Invalid: one of them cannot be stored.
        AllowanceSpent: the workspace's runs have reached their limit of events.
    """
    stored = events_of(run.project.workspace_id)
    refuse_events("events", len(events), stored, len(events))
    try:
        refuse_broken_trees(run.pk, events, run.head_seq)
        refuse_too_many(run, events, 0)
        ingest_history(run, events)
    except (GapError, Unwritable, DataError, OverflowError, ValueError) as error:
        raise Invalid(where, "", printable(str(error))) from None


def _refuse_session(run: Run, session: uuid.UUID | None) -> None:
    """Raises `WrongSession` unless the process of a tracked run names itself; no other run has one.
    The run's row is locked, so no other process takes over meanwhile."""
    current = run.tracking.session if run.tracked else None
    if session == current:
        return
    if current is None:
        raise WrongSession("Only a tracked run has sessions: leave session out.")
    raise WrongSession(
        "Another process logs this run: take its place (POST /runs/tracked) once it has ended, or "
        "log to another run."
    )


def _last_state(events: Sequence[Event]) -> tuple[RunState, str] | None:
    payloads = [event.payload for event in events if event.kind == "run.state"]
    return (RunState(payloads[-1]["state"]), payloads[-1]["reason"]) if payloads else None


def _decoded(decoder: msgspec.json.Decoder, text: bytes) -> Any:
    """Returns the decoded text; if the decoder refuses it, retries with 1.0 rewritten as 1, which
    JSON Schema does not distinguish. Grove's engine writes integers, so only others pay for it.

    Raises:
        msgspec.DecodeError: for the original text, if the rewritten one is invalid as well.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as refusal:
        rewritten = msgspec.json.encode(with_integers(msgspec.json.decode(text)))
        try:
            return decoder.decode(rewritten)
        except msgspec.ValidationError:
            raise refusal from None


def checked(index: int, event: Line) -> Event:
    """Returns an event whose payload is complete and of its kind. Raises `Invalid`, which names the
    event by `index`."""
    for name, (smallest, largest) in _BOUNDS.items():
        value = getattr(event, name)
        if value is not None and not smallest <= value <= largest:
            raise Invalid(f"events.{index}.{name}", value, f"give one of {smallest} to {largest}")
    if not 0 <= event.time <= LAST_SECOND:
        raise Invalid(f"events.{index}.time", event.time, "give Unix seconds")
    if event.kind not in KINDS:
        raise Invalid(f"events.{index}.kind", event.kind, f"give one of {', '.join(KINDS)}")
    needs = {"tree": ("tree", "node"), "node": ("node",)}
    for name, families in needs.items():
        if event.kind.partition(".")[0] in families and getattr(event, name) is None:
            raise Invalid(f"events.{index}.{name}", None, f"{event.kind} is about one: name it")
    payload = _payload(index, event)
    return Event(event.seq, event.time, event.kind, event.tree, event.node, payload)


def _payload(index: int, event: Line) -> dict[str, Any]:
    """Returns the payload after a typed round trip: complete, and without unknown fields."""
    path = f"events.{index}.payload"
    try:
        payload = _typed(event.kind, bytes(event.payload))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid(path, "", printable(str(error))) from None
    for name, largest in PAYLOAD_BOUNDS.items():
        if not 0 <= payload.get(name, 0) <= largest:
            raise Invalid(f"{path}.{name}", payload[name], f"give one of 0 to {largest}")
    refuse_bad_values(path, event.kind, payload)
    for name, given in _names_in(payload):
        if given and (fault := name_fault(given)):
            raise Invalid(f"{path}.{name}", given, fault)
    del payload["type"]
    return payload


def _typed(kind: str, text: bytes) -> dict[str, Any]:
    """Returns the payload of an event with its defaults, but for figures that are missing.

    Raises:
        msgspec.DecodeError: it is not of its kind.
    """
    if kind not in WITH_DEFAULTS:
        try:
            return msgspec.to_builtins(_decoded(_READERS[kind], text))
        except msgspec.ValidationError:
            if kind not in FIGURE_KINDS and kind not in TOKEN_LISTS:
                raise
    given, gaps = without_gaps(kind, msgspec.json.decode(text))
    try:
        filled = msgspec.json.encode(given)
    except OverflowError as error:  # an integer of more than 64 bits
        raise msgspec.ValidationError(str(error)) from None
    payload = msgspec.to_builtins(_decoded(_READERS[kind], filled))
    gaps.restore(payload)
    return payload


def _names_in(payload: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the fields of a payload that name an agent or a problem, with their values."""
    for field in NAMING:
        if field in payload:
            yield field, payload[field]
    for field in NAMING_MANY:
        for index, name in enumerate(payload.get(field, ())):
            yield f"{field}.{index}", name
