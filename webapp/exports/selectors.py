"""Reads of exports: users who see the project see its exports."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404

from webapp.accounts.models import User
from webapp.exports.models import Export, ExportState
from webapp.rest.pagination import moment_in

READ_BYTES = 1 << 18


def visible_exports(user: User) -> QuerySet[Export]:
    """Exports that `user` sees, newest first."""
    exports = Export.objects.visible_to(user)
    return exports.select_related("project", "run__experiment", "created_by").order_by(
        "-created", "-pk"
    )


def visible_export(user: User, export_id: uuid.UUID) -> Export:
    """Returns the export; raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_exports(user), pk=export_id)


def exports_page(
    user: User, project: int | None, state: str | None, cursor: str | None, limit: int
) -> tuple[list[Export], str | None]:
    """One keyset page, newest first, and the cursor of the next one.

    Raises `ValueError` for a cursor that no page returned.
    """
    exports = visible_exports(user)
    if project is not None:
        exports = exports.filter(project=project)
    if state is not None:
        exports = exports.filter(state=state)
    if cursor:
        text, _, pk = cursor.rpartition("_")
        created, pk = moment_in(text), uuid.UUID(pk)
        exports = exports.filter(Q(created__lt=created) | Q(created=created, pk__lt=pk))
    shown = list(exports[: limit + 1])
    if len(shown) <= limit:
        return shown, None
    last = shown[limit - 1]
    return shown[:limit], f"{last.created.isoformat()}_{last.pk}"


def unavailable_reason(export: Export) -> str:
    """Why its file cannot be downloaded; "" if it can."""
    if export.export_state is ExportState.READY:
        return "" if export.path.is_file() else "Its file is lost; request it again."
    if export.export_state is ExportState.FAILED:
        return f"It failed: {export.error}"
    return f"It is {export.export_state.label.lower()}: try again in a few seconds."


async def content(export: Export) -> AsyncIterator[bytes]:
    """The file, piece by piece; a slow reader holds no thread meanwhile."""
    file = await sync_to_async(export.path.open)("rb")
    try:
        while piece := await sync_to_async(file.read)(READ_BYTES):
            yield piece
    finally:
        await sync_to_async(file.close)()
