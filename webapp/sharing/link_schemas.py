"""Schemas of links that show one thing, live or frozen: requests for one, and what lists show."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field

from webapp.rest.json_types import Flag, Integer

EXAMPLE: dict[str, Any] = {
    "id": 4,
    "frozen": True,
    "created": "2026-11-22T10:00:00Z",
    "expires": "2026-11-29T10:00:00Z",
}


class NewLink(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"days": 7}]})

    days: Integer = Field(7, ge=1, le=90)
    frozen: Flag = False
    """Whether the link keeps showing everything as it is now."""


class LinkOut(Schema):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    id: int
    frozen: bool
    created: datetime
    expires: datetime

    @staticmethod
    def resolve_frozen(share: Any) -> bool:
        return share.frozen is not None


class MadeLink(LinkOut):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{**EXAMPLE, "link": "https://grove.example/shared/..."}]}
    )

    link: str
    """Shown once: only its digest is stored."""


class LinkList(Schema):
    model_config = ConfigDict(json_schema_extra={"examples": [{"shares": [EXAMPLE], "next": None}]})

    shares: list[LinkOut]
    next: int | None
    """Cursor of the next page, null on the last."""
