"""A workspace's audit records as a CSV file, for people who keep or search them elsewhere.

Invariant: a file has every record that the query selects, newest first, whatever their number; it
is written while it is sent, page by page. Names that people chose start no formula (`csv_cells`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse

from webapp.audit.selectors import AuditQuery, Entry, entries
from webapp.csv_cells import safe_cell
from webapp.projects.models import Workspace

COLUMNS = ("at", "kind", "user", "text", "token", "method", "route", "address")
PAGE_ROWS = 200
"""Records that are read and sent at a time."""


def sent(request: HttpRequest, workspace: Workspace, query: AuditQuery) -> StreamingHttpResponse:
    """The file as a download. Callers have checked who may see it (`Action.AUDIT`)."""
    headers = {
        "Content-Disposition": f'attachment; filename="{workspace.slug}-activity.csv"',
        "Cache-Control": "private, no-store",
    }
    blocks = () if request.method == "HEAD" else _streamed(workspace, query)
    return StreamingHttpResponse(blocks, content_type="text/csv; charset=utf-8", headers=headers)


async def _streamed(workspace: Workspace, query: AuditQuery) -> AsyncIterator[bytes]:
    yield _lines([COLUMNS])
    cursor, is_last = None, False
    while not is_last:
        rows, cursor = await sync_to_async(entries)(workspace, query, cursor, PAGE_ROWS)
        yield _lines(map(_cells, rows))
        is_last = cursor is None


def _cells(entry: Entry) -> list[str]:
    plain = (entry.at.isoformat(), entry.kind)
    given = (
        entry.name, entry.text, entry.token, entry.method, entry.route, entry.address,
    )  # fmt: skip
    return [*plain, *(safe_cell(one or "") for one in given)]


def _lines(rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
