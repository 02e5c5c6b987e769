"""Encoding of stored events as wire bytes, without an object per event.

Pure, but for the SQL text: both Django's connection (REST) and the stream's own pool run it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from engine.events.vocabulary import KINDS, Event

Row = tuple[int, int, str, int | None, int | None, str]

_COLUMNS = "kind, tree, node, payload::text FROM telemetry_event AS event"
_AFTER = "WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s"
SELECT = f"SELECT seq, (extract(epoch FROM time) * 1000)::bigint, {_COLUMNS}"
AFTER = f"{SELECT} {_AFTER}"
"""Rows after a cursor: run, seq, limit."""
EXACT_AFTER = f"SELECT seq, extract(epoch FROM time) * 1000, {_COLUMNS} {_AFTER}"
"""The same with the stored microseconds, as a decimal fraction of a millisecond."""


def topics_match(topics: frozenset[str], kind: str) -> bool:
    """Returns whether a topic names this kind, by itself, its first word ("node") or "*", and no
    topic excludes it ("-node.text")."""
    named = not topics.isdisjoint(("*", kind, kind.partition(".")[0]))
    return named and f"-{kind}" not in topics


@lru_cache(maxsize=256)
def _kind(kind: str) -> str:
    return msgspec.json.encode(kind).decode()


def encode_row(row: Row) -> bytes:
    """Returns `[seq, t_ms, kind, payload]`: the payload's own text, with tree and node inserted."""
    seq, milliseconds, kind, tree, node, payload = row
    ids = [
        f'"{name}":{value}' for name, value in (("tree", tree), ("node", node)) if value is not None
    ]
    if ids:
        rest = payload[1:].lstrip()
        comma = "" if rest == "}" else ","
        payload = "{" + ",".join(ids) + comma + rest
    return f"[{seq},{milliseconds},{_kind(kind)},{payload}]".encode()


def decode_event(seq: int, milliseconds: float, kind: str, payload: dict[str, Any]) -> Event:
    """Inverts `encode_row`, for a client. An evaluation's own `tree` stays in its payload."""
    own = KINDS[kind].__struct_fields__ if kind in KINDS else ()
    tree, node = (payload.get(name) if name not in own else None for name in ("tree", "node"))
    rest = {n: v for n, v in payload.items() if n in own or n not in ("tree", "node")}
    return Event(seq, milliseconds / 1000, kind, tree, node, rest)
