"""Transitions of exports: request, take, finish, remove. `exports.making` reads the data."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from engine.config.deadlines import EXPORT
from webapp.accounts.models import User
from webapp.experiments.models import Run
from webapp.experiments.runs_list.listing import RunQuery
from webapp.exports.models import Export, ExportState, Format, Table, exports_directory
from webapp.exports.selectors import visible_export
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.projects.turns import last_turn
from webapp.server_paths import relative

LIFETIME = timedelta(days=7)
MOST_QUEUED = 20
"""Exports of one project that are queued or being written."""
_FILTERS = ("state", "q", "tag", "name", "created_by", "starred", "archived", "sort")


class TooManyExports(Exception):
    """Raised if a project has as many pending exports as it may."""


@transaction.atomic
def request_export(
    project: Project,
    user: User,
    table: Table,
    file: Format,
    query: RunQuery,
    run: Run | None = None,
) -> Export:
    """Queues an export of the one run, or of the project's runs that match `query`.

    Raises:
        TooManyExports: the project has `MOST_QUEUED` pending.
    """
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    pending = Export.objects.filter(project=project, finished=None)
    if pending.count() >= MOST_QUEUED:
        raise TooManyExports(
            f"{MOST_QUEUED} exports of {project} are pending: wait until one is done"
        )
    return Export.objects.create(
        project=project, run=run, table=table, format=file, filters=filters_of(query),
        created_by=user,
    )  # fmt: skip


def filters_of(query: RunQuery) -> dict[str, Any]:
    """The stored filters of a query, without those at their default."""
    values, defaults = asdict(query), asdict(RunQuery())
    return {name: values[name] for name in _FILTERS if values[name] != defaults[name]}


@transaction.atomic
def take() -> Export | None:
    """Takes the next export for a worker to write; None if none is queued. Workspaces take turns,
    as do people: the one whose last turn is longest ago goes first."""
    waiting = Export.objects.select_for_update(skip_locked=True, of=("self",))
    turn = last_turn(Export, "project__workspace").asc(nulls_first=True)
    export = waiting.filter(state=ExportState.QUEUED).order_by(turn, "created", "pk").first()
    if export is None:
        return None
    export.attempt += 1
    Export.objects.filter(pk=export.pk).update(
        state=ExportState.RUNNING,
        attempt=export.attempt,
        started=Now(),
        deadline=Now() + timedelta(seconds=EXPORT.seconds),
    )
    return export


def give_back(export: Export) -> None:
    """Queues the export again, because its taker ends before it is done."""
    _taken(export).update(state=ExportState.QUEUED, started=None, deadline=None)


def finish(export: Export, rows: int, size: int, sha256: str) -> bool:
    """Marks the export ready; False if another worker took it meanwhile: the file is then
    orphaned."""
    result = {"rows": rows, "size": size, "sha256": sha256}
    return bool(_end(_taken(export), ExportState.READY, **result))


def fail(export: Export, cause: str) -> None:
    _end(_taken(export), ExportState.FAILED, error=relative(cause.replace("\0", "\ufffd"))[:2000])


def fail_late() -> int:
    """Fails the exports that are past their deadline; returns how many."""
    late = Export.objects.filter(state=ExportState.RUNNING, deadline__lt=Now())
    cause = (
        f"its worker ended, or it was not done within {EXPORT.seconds / 60:g} minutes; request it "
        f"again, or export fewer runs; {EXPORT.remedy}"
    )
    return _end(late, ExportState.FAILED, error=cause)


def removable(user: User, export_id: uuid.UUID) -> Export:
    """Returns the export if `user` requested it, or may start runs in its project.

    Raises `Http404` if it does not exist for them, `PermissionDenied` if they may not remove it.
    """
    export = visible_export(user, export_id)
    action = Action.READ if export.created_by_id == user.pk else Action.OPERATE
    require(user, action, export.project)
    return export


def remove(export: Export) -> None:
    """Deletes the export and its file; one that is being written is discarded when it is done."""
    Export.objects.filter(pk=export.pk).delete()
    transaction.on_commit(partial(export.path.unlink, missing_ok=True))


def remove_expired() -> int:
    """Removes expired exports; returns how many."""
    expired = Export.objects.filter(expires__lt=Now())
    for export in expired:
        remove(export)
    return len(expired)


def remove_strays() -> int:
    """Removes files whose row was deleted with its project, run or requester, and drafts that
    nobody writes any more; returns how many."""
    files = [path for path in exports_directory().glob("*.*") if _id_of(path)]
    states = dict(
        Export.objects.filter(pk__in={_id_of(path) for path in files}).values_list("pk", "state")
    )
    strays = [path for path in files if not _is_needed(path, states.get(_id_of(path)))]
    for path in strays:
        path.unlink(missing_ok=True)
    return len(strays)


def _id_of(path: Path) -> uuid.UUID | None:
    try:
        return uuid.UUID(path.name.partition(".")[0])
    except ValueError:
        return None


def _is_needed(path: Path, state: str | None) -> bool:
    is_draft = path.suffix == ".part"
    return state is not None and not (is_draft and ExportState(state).is_over)


def _taken(export: Export) -> Any:
    held = {"pk": export.pk, "attempt": export.attempt, "state": ExportState.RUNNING}
    return Export.objects.filter(**held)


def _end(exports: Any, state: ExportState, **values: Any) -> int:
    return exports.update(
        state=state, finished=Now(), deadline=None, expires=Now() + LIFETIME, **values
    )
