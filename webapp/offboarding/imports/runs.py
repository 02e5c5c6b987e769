"""Runs of an export with their logs, comments and searches.

Invariants: a run arrives ended, as one whose engine is elsewhere, so that no worker, lease or alert
ever sees it at work; its log is checked as one that an external engine sends, and what pages show
of it is computed from that log.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from engine.config.errors import ConfigError
from engine.config.schema import parse_config
from engine.events.vocabulary import Event, RunState
from webapp.comments.models import Comment, ComparedRun
from webapp.experiments.annotations.actions import note_action
from webapp.experiments.annotations.annotations import InvalidAnnotation, clean_notes, clean_tags
from webapp.experiments.models import Run, RunAction, Tracking
from webapp.experiments.scheduling.states import ENDED
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports import records
from webapp.offboarding.imports.archive import Archive, decoded, plain
from webapp.offboarding.imports.rows import Import, create
from webapp.rest.problem_details import Invalid
from webapp.searches.models import Search
from webapp.searches.problems import recorded_problem
from webapp.telemetry.ingest.external_engines import Line, checked, store_history
from webapp.telemetry.ingest.rows import decode_event

_BATCH = 1000
_LINE = msgspec.json.Decoder(tuple[int, float, str, dict[str, Any]])


def create_runs(job: Import) -> None:
    member, parents = "runs.jsonl", {}
    tracked = {one.run_id: one for one in job.archive.rows("tracking.jsonl", records.Tracking)}
    for one in job.archive.rows(member, records.Run):
        run = _run(job, member, one, tracked.get(one.id))
        job.ids.add(member, "run", one.id, run)
        parents[run.pk] = one.parent_id
    for pk, parent in parents.items():
        if parent is not None:
            Run.objects.filter(pk=pk).update(parent=job.ids.get(member, "run", parent))


def _run(job: Import, member: str, one: records.Run, tracking: records.Tracking | None) -> Run:
    refuse_run(member, one)
    state = one.state if one.state in ENDED else RunState.STOPPED
    run = create(
        Run,
        {"created": one.created},
        experiment=job.ids.get(member, "experiment", one.experiment_id),
        number=one.number,
        config={} if one.tracked else plain(one.config),
        variant=plain(one.variant),
        parent_step=one.parent_step,
        seed=one.seed,
        dataset_version=job.ids.get(member, "dataset version", one.dataset_version_id),
        created_by=job.people.user(member, one.created_by_id),
        state=state.value,
        queued_at=one.queued_at,
        started_at=one.started_at,
        finished_at=one.finished_at,
        outside=True,
        tracked=one.tracked,
        restarts=one.restarts,
        step=one.step,
        steps=one.steps,
    )
    if one.tracked:
        _track(run, member, one, tracking)
    _store_log(job, run, one.id)
    _annotate(run, one)
    by = job.people.name(member, one.created_by_id)
    detail = f"Imported. Created by {by} on {one.created:%Y-%m-%d}, there run {one.id}"
    if state is not one.state:
        detail += f", {one.state.label.lower()} when it was exported"
    note_action(run, job.people.importer, RunAction.Kind.NOTE, f"{detail}.")
    return run


def refuse_run(member: str, one: records.Run) -> None:
    """Raises `ImportRefused` for a run whose settings or annotations cannot be used."""
    try:
        clean_tags(one.tags), clean_notes(one.notes)
    except InvalidAnnotation as error:
        raise ImportRefused(member, f"run {one.id}: {error}") from None
    if one.tracked:  # its settings are in its log
        return
    try:
        parse_config(one.config)
    except ConfigError as error:
        raise ImportRefused(
            member,
            f"the settings of run {one.id} cannot be read by this version of Grove: {error}. If a "
            "plug-in has such methods, install it here.",
        ) from None


def _track(run: Run, member: str, one: records.Run, tracking: records.Tracking | None) -> None:
    if tracking is None:
        raise ImportRefused(member, f"run {one.id} has no row in tracking.jsonl.")
    # Its settings are in its log. No process has this session.
    run.tracking = create(
        Tracking, run=run, project=run.project, key=tracking.key, group=tracking.group,
        session=uuid.uuid4(),
    )  # fmt: skip


def _store_log(job: Import, run: Run, old: uuid.UUID) -> None:
    name = f"runs/{old}/events.ndjson"
    batch: list[Event] = []
    for event in events_in(job.archive, old):
        batch.append(event)
        if len(batch) == _BATCH:
            _store(run, batch, name)
            batch = []
    if batch:
        _store(run, batch, name)


def _store(run: Run, batch: list[Event], name: str) -> None:
    try:
        store_history(run, batch, name)
    except Invalid as error:
        first, last = batch[0].seq, batch[-1].seq
        raise ImportRefused(f"{name}, events {first} to {last}", str(error)) from None


def events_in(archive: Archive, run: uuid.UUID) -> Iterator[Event]:
    """Yields the events of a run's log. Raises `ImportRefused` naming the line of a bad one."""
    name = f"runs/{run}/events.ndjson"
    for number, line in archive.lines(name):
        seq, milliseconds, kind, payload = decoded(_LINE, line, name, number)
        given = decode_event(seq, milliseconds, kind, payload)
        try:
            if not {type(given.tree), type(given.node)} <= {int, type(None)}:
                raise TypeError("tree and node are integers")
            raw = msgspec.Raw(msgspec.json.encode(given.payload))
            yield checked(number - 1, Line(seq, given.time, kind, given.tree, given.node, raw))
        except (Invalid, TypeError) as error:
            raise ImportRefused(f"{name}, line {number}", f"{kind}: {error}") from None


def _annotate(run: Run, one: records.Run) -> None:
    run.tags, run.notes = clean_tags(one.tags), clean_notes(one.notes)
    run.error = run.error or one.error
    run.archived_at, run.finished_at = one.archived_at, one.finished_at
    run.waiting_name, run.waiting_since, run.waiting_deadline = "", None, None
    run.step, run.steps = one.step, one.steps
    run.save()


def create_comments(job: Import) -> None:
    member = "comments.jsonl"
    for one in job.archive.rows(member, records.Comment):
        run = job.ids.get(member, "run", one.run_id)
        compared = [job.ids.find("run", old) for old in compared_in(member, one)]
        # Of a comparison with runs of other workspaces a comment on the run is left.
        runs = [] if None in compared else sorted(compared, key=lambda row: row.pk)
        comment = create(
            Comment,
            {"created": one.created},
            run=runs[0] if runs else run,
            tree=one.tree,
            node=one.node,
            comparison=",".join(str(row.pk) for row in runs),
            author=job.people.user(member, one.author_id),
            text=job.people.signed(member, one.text, one.author_id),
            edited=one.edited,
        )
        ComparedRun.objects.bulk_create(ComparedRun(comment=comment, run=row) for row in runs)


def compared_in(member: str, one: records.Comment) -> list[uuid.UUID]:
    """Returns the ids of the runs that a comment compares. Raises `ImportRefused`."""
    return [_uuid(member, old) for old in one.comparison.split(",")] if one.comparison else []


def _uuid(member: str, text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise ImportRefused(member, f"{text!r} is no id of a run.") from None


def create_searches(job: Import) -> None:
    member = "searches.jsonl"
    for one in job.archive.rows(member, records.Search):
        try:
            recorded_problem(one.problem)
        except ConfigError as error:
            raise ImportRefused(member, f"the problem of run {one.run_id}: {error}") from None
        create(Search, run=job.ids.get(member, "run", one.run_id), problem=plain(one.problem))
