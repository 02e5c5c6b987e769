"""Pages of lists that have no order of their own: by id, each going on after the last one's.

Invariant: while one walks, what is added or removed elsewhere neither doubles nor hides a row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from ninja import Schema
from pydantic import Field

LARGEST_ID = 2**63 - 1
A_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?\+00:00"
A_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""Of these, as patterns, cursors are made whose lists have an order of their own."""


class Cursor(Schema):
    """What one asks for."""

    cursor: int | None = Field(None, ge=0, le=LARGEST_ID)
    """`next` of the page before."""
    limit: int = Field(50, ge=1, le=200)


def page(rows: QuerySet, name: str, asked: Cursor) -> dict[str, Any]:
    """{name: some rows by id, "next": the cursor of the page after, None on the last}."""
    found = list(rows.filter(pk__gt=asked.cursor or 0).order_by("pk")[: asked.limit + 1])
    shown = found[: asked.limit]
    return {name: shown, "next": shown[-1].pk if len(found) > len(shown) else None}


def moment_in(text: str) -> datetime:
    """The moment that a cursor names. Raises `ValueError` for what is none, or is beyond all."""
    moment = datetime.fromisoformat(text)
    if moment.utcoffset() is None:
        raise ValueError(f"{text} has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text} is no moment that a row could have") from None
