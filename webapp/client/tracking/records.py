"""Records of a run that a program logs: lines of the spool, each an event of the telemetry, and
values as the server takes them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from webapp.client.tracking import limits, values
from webapp.client.tracking.axes import LARGEST_STEP

LAST_SECOND = 4e9
"""Largest time of an event that the server takes, in Unix seconds."""
encode = msgspec.json.Encoder().encode


def encoded_now(
    kind: str, payload: Mapping[str, Any], tree: int | None = None, node: int | None = None
) -> bytes:
    """Returns the line of an event of this moment."""
    return encoded(kind, payload, time.time(), tree, node)


def encoded(
    kind: str, payload: Mapping[str, Any], at: float, tree: int | None = None,
    node: int | None = None, **kept: Any,
) -> bytes:  # fmt: skip
    """Returns the line of an event at a Unix time; what is `kept` is of the spool alone."""
    line = {"time": at, "kind": kind, "tree": tree, "node": node, "payload": payload}
    return encode({**line, **kept} if kept else line)


def whole_step(step: int) -> int:
    """Returns the step that the server takes which is nearest to that of another tracker."""
    return max(0, min(step, LARGEST_STEP))


_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show nothing; the server refuses a tag of them alone."""


def tags_of(tags: Sequence[Any]) -> list[str]:
    """Returns tags as the server takes them: words, at most 20."""
    words = ("-".join(str(tag).replace(",", " ").split())[: limits.LONGEST_TAG] for tag in tags)
    cleaned = (values.name_of(word) for word in words if word.strip(_BLANK_LETTERS))
    return list(dict.fromkeys(cleaned))[: limits.MOST_TAGS]
