"""Pagination of lists without an order of their own: by id, each page continues after the last id.

Invariant: while a client pages, rows added or removed elsewhere neither duplicate nor hide a row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from ninja import Schema
from pydantic import Field

LARGEST_ID = 2**63 - 1
MOMENT_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?\+00:00"
UUID_PATTERN = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""Patterns of which the cursors of lists with their own order are composed."""


class Cursor(Schema):
    """Query of a page."""

    cursor: int | None = Field(None, ge=0, le=LARGEST_ID)
    """`next` of the previous page."""
    limit: int = Field(50, ge=1, le=200)


def page(rows: QuerySet, name: str, query: Cursor) -> dict[str, Any]:
    """{name: some rows by id, "next": the cursor of the following page, None on the last}."""
    fetched = list(rows.filter(pk__gt=query.cursor or 0).order_by("pk")[: query.limit + 1])
    shown = fetched[: query.limit]
    return {name: shown, "next": shown[-1].pk if len(fetched) > len(shown) else None}


def moment_in(text: str) -> datetime:
    """The moment that a cursor names. Raises `ValueError` if it is invalid or out of range."""
    moment = datetime.fromisoformat(text)
    if moment.utcoffset() is None:
        raise ValueError(f"{text} has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text} is no moment that a row could have") from None
