"""Export of a whole workspace as one zip, produced while it is sent.

    workspace.json                          name, and `format`, the version of this layout
    members.jsonl projects.jsonl audit.jsonl comments.jsonl
    experiments.jsonl runs.jsonl            settings, state, result, tags, notes
    tracking.jsonl                          ids and settings of runs of other programs
    runs/ID/events.ndjson                   [seq, ms since 1970, kind, payload], as in REST, but
                                            with microseconds
    runs/ID/metrics.jsonl                   {name, index, seq, step, time, tokens, nodes, value}
    datasets.jsonl datasets/ID/problems     the content of a stored version
    datasets/ID/checks.jsonl                {state, reason} of each problem, in order
    models.jsonl models/ID/FILE             the files of a version
    files.jsonl uses.jsonl                  digests of these files; the versions that agents of runs
                                            started from
    aliases.jsonl promotions.jsonl evaluations.jsonl searches.jsonl
    reports.jsonl report_versions.jsonl     text; and of frozen figures, the data:
    frozen_figures.jsonl
    missing.jsonl                           files that no longer exist, and why
    people.jsonl                            {id, name} of all people that rows refer to
    manifest.json                           {format, members}: size and SHA-256 of all of the above

Invariants: no more than one page or block is in memory; no name consists of a user's text alone; no
secret or digest of one is included. A completely sent export is recorded (`WorkspaceExport`) with
the state at its start: after a change in between it counts as an export of the state before.
`offboarding.imports` reads it; a change of the layout raises `FORMAT`.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from channels.db import database_sync_to_async
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.db.models import QuerySet

from webapp import __version__
from webapp.accounts.models import User
from webapp.artifacts.store import open_artifact
from webapp.audit.selectors import AuditQuery, entries
from webapp.comments.models import Comment
from webapp.datasets.models import DatasetProblem, DatasetVersion
from webapp.experiments.models import Experiment, Run, Tracking
from webapp.offboarding.models import WorkspaceExport
from webapp.offboarding.state import state_of
from webapp.projects.models import Workspace
from webapp.registry.models import (
    Alias,
    Evaluation,
    ModelUse,
    ModelVersion,
    Promotion,
    VersionFile,
)
from webapp.reports.models import FrozenFigure, ReportPage, ReportVersion
from webapp.searches.models import Search
from webapp.telemetry.ingest import rows
from webapp.telemetry.models import Block

FORMAT = 1
"""Version of the layout. Exports without one were made before it could be imported."""
MANIFEST = "manifest.json"
_BLOCK = 1 << 20
_PAGE = 1000
_AUDIT_PAGE = 200
_OF_THIS_SERVER = ("lease_owner", "engine_pid", "engine_started", "traceparent")
"""Fields of a run that mean nothing elsewhere."""

Parts = Iterator[tuple[str, Iterable[bytes]]]
"""Name of a member, and its content in blocks."""


class BufferedOutput:
    """Output file of zipfile that buffers only what was not sent yet."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._waiting.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def taken(self) -> bytes:
        data, self._waiting = b"".join(self._waiting), []
        return data


def export(workspace: Workspace, user: User) -> Iterator[bytes]:
    """The zip, block by block; recorded once the last one was consumed."""
    state, outlet = state_of(workspace), BufferedOutput()
    members: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(outlet, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:  # type: ignore[arg-type]
        for name, blocks in _parts(workspace):
            size, digest = 0, hashlib.sha256()
            with made.open(name, "w", force_zip64=True) as member:
                for block in blocks:
                    member.write(block)
                    digest.update(block)
                    size += len(block)
                    if data := outlet.taken():
                        yield data
            members[name] = {"size": size, "sha256": digest.hexdigest()}
        made.writestr(MANIFEST, _json({"format": FORMAT, "members": members}))
    yield outlet.taken()
    WorkspaceExport.objects.create(workspace=workspace, state=state, made_by=user)


async def streamed(workspace: Workspace, user: User) -> AsyncIterator[bytes]:
    """`export`, each block produced in a thread that returns its connection."""
    blocks = export(workspace, user)
    following = database_sync_to_async(lambda: next(blocks, None))
    while (block := await following()) is not None:
        yield block


def _parts(workspace: Workspace) -> Parts:
    about = {"name": workspace.name, "slug": workspace.slug}
    yield "workspace.json", [_json({**about, "format": FORMAT, "grove": __version__})]
    members = workspace.memberships.select_related("user").order_by("pk")
    yield "members.jsonl", (_json({"name": m.user.username, "role": m.role}) for m in members)
    yield "projects.jsonl", _table(workspace.projects.all(), "workspace")
    yield "audit.jsonl", _audit(workspace)
    inside = {"project__workspace": workspace}
    yield "experiments.jsonl", _table(Experiment.objects.filter(**inside))
    runs = Run.objects.filter(experiment__project__workspace=workspace)
    yield "runs.jsonl", _table(runs, *_OF_THIS_SERVER)
    yield "tracking.jsonl", _table(Tracking.objects.filter(run__in=runs), "session", "host")
    yield "comments.jsonl", _table(Comment.objects.filter(run__in=runs))
    yield "searches.jsonl", _table(Search.objects.filter(run__in=runs))
    yield "reports.jsonl", _table(ReportPage.objects.filter(**inside))
    of_reports = {"page__project__workspace": workspace}
    yield "report_versions.jsonl", _table(ReportVersion.objects.filter(**of_reports))
    yield "frozen_figures.jsonl", _table(FrozenFigure.objects.filter(**of_reports))
    for run_id in list(runs.order_by("created", "pk").values_list("pk", flat=True)):
        yield f"runs/{run_id}/events.ndjson", _events(run_id)
        yield f"runs/{run_id}/metrics.jsonl", _metrics(run_id)
    missing: list[bytes] = []
    yield from _datasets(workspace, missing)
    yield from _models(workspace, missing)
    yield "missing.jsonl", missing
    yield "people.jsonl", _people(workspace)


def _datasets(workspace: Workspace, missing: list[bytes]) -> Parts:
    versions = DatasetVersion.objects.filter(dataset__project__workspace=workspace)
    yield "datasets.jsonl", _table(versions, names=("dataset__name", "dataset__project"))
    stored = versions.exclude(artifact=None).order_by("pk")
    for pk, sha256 in list(stored.values_list("pk", "artifact")):
        yield from _file(f"datasets/{pk}/problems", sha256, missing)
        yield f"datasets/{pk}/checks.jsonl", _checks(pk)


def _models(workspace: Workspace, missing: list[bytes]) -> Parts:
    versions = ModelVersion.objects.filter(model__project__workspace=workspace)
    yield "models.jsonl", _table(versions, "path", names=("model__name", "model__project"))
    for name, table in (("aliases", Alias), ("promotions", Promotion)):
        yield f"{name}.jsonl", _table(table.objects.filter(model__project__workspace=workspace))
    yield "evaluations.jsonl", _table(Evaluation.objects.filter(version__in=versions))
    yield "uses.jsonl", _table(ModelUse.objects.filter(version__in=versions))
    files = VersionFile.objects.filter(version__in=versions).select_related("version")
    yield "files.jsonl", _table(files, "artifact_id")
    for file in list(files.order_by("version", "name")):
        content = file.artifact_id or Path(file.version.path) / file.name
        yield from _file(f"models/{file.version_id}/{file.name}", content, missing)


def _file(name: str, content: str | Path, missing: list[bytes]) -> Parts:
    """`content` is the SHA-256 of an artifact, or the path at which a run keeps the file."""
    try:
        opened = content.open("rb") if isinstance(content, Path) else open_artifact(content)
    except OSError as error:
        missing.append(_json({"name": name, "reason": type(error).__name__}))
        return
    with opened:
        yield name, _blocks(opened)


def _blocks(content: IO[bytes]) -> Iterator[bytes]:
    while block := content.read(_BLOCK):
        yield block


def _table(rows: QuerySet[Any], *left_out: str, names: tuple[str, ...] = ()) -> Iterator[bytes]:
    """All columns of all rows, by page."""
    fields = rows.model._meta.concrete_fields
    columns = [f.attname for f in fields if not {f.name, f.attname} & set(left_out)]
    key = rows.model._meta.pk.attname
    last, ordered = None, rows.order_by("pk")
    while page := list(
        (ordered.filter(pk__gt=last) if last else ordered).values(*columns, *names)[:_PAGE]
    ):
        last = page[-1][key]
        yield b"".join(map(_json, page))


def _checks(version: int) -> Iterator[bytes]:
    columns = ("number", "check_state", "check_reason")
    rows = DatasetProblem.objects.filter(version=version).order_by("number").values_list(*columns)
    last = 0
    while page := list(rows.filter(number__gt=last)[:_PAGE]):
        last = page[-1][0]
        yield b"".join(_json({"state": state, "reason": reason}) for _, state, reason in page)


def _people(workspace: Workspace) -> Iterator[bytes]:
    """Everybody whom a row of the workspace refers to, and nobody else of the installation."""
    inside = {"project__workspace": workspace}
    sources = (
        (workspace.memberships, "user"), (workspace.projects, "created_by"),
        (Experiment.objects.filter(**inside), "created_by"),
        (Run.objects.filter(experiment__project__workspace=workspace), "created_by"),
        (Comment.objects.filter(run__experiment__project__workspace=workspace), "author"),
        (DatasetVersion.objects.filter(dataset__project__workspace=workspace), "created_by"),
        (ModelVersion.objects.filter(model__project__workspace=workspace), "created_by"),
        (Promotion.objects.filter(model__project__workspace=workspace), "asked_by"),
        (Promotion.objects.filter(model__project__workspace=workspace), "decided_by"),
        (ReportPage.objects.filter(**inside), "created_by"),
        (ReportPage.objects.filter(**inside), "edited_by"),
    )  # fmt: skip
    ids = {pk for rows, field in sources for pk in rows.values_list(field, flat=True)} - {None}
    names = User.objects.filter(pk__in=ids).order_by("pk").values_list("pk", "username")
    yield b"".join(_json({"id": pk, "name": name}) for pk, name in names)


def _audit(workspace: Workspace) -> Iterator[bytes]:
    cursor = None
    while True:
        records, cursor = entries(workspace, AuditQuery(), cursor, _AUDIT_PAGE)
        yield b"".join(_json({"at": one.at, "kind": one.kind, "text": one.text}) for one in records)
        if cursor is None:
            return


def _events(run_id: Any) -> Iterator[bytes]:
    last = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(rows.EXACT_AFTER, [run_id, last, _PAGE])
            events = cursor.fetchall()
        if not events:
            return
        yield b"".join(rows.encode_row(row) + b"\n" for row in events)
        last = events[-1][0]


def _metrics(run_id: Any) -> Iterator[bytes]:
    columns = ("metric__name", "index", "seq", "step", "time", "tokens", "nodes", "value")
    blocks = Block.objects.filter(metric__run=run_id).order_by("metric", "index")
    first = 0
    while page := list(blocks.values(*columns)[first : first + _PAGE]):
        first += _PAGE
        yield b"".join(_json({"name": row.pop("metric__name"), **row}) for row in page)


class _Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        # Django's own keeps milliseconds only.
        return o.isoformat() if isinstance(o, datetime) else super().default(o)


def _json(value: Any) -> bytes:
    return json.dumps(value, cls=_Encoder, ensure_ascii=False).encode() + b"\n"
