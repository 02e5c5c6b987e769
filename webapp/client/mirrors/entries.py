"""Events of a run as entries of another tracker. Pure."""

from __future__ import annotations

import base64
import math
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any

from webapp.client.mirrors import TEXT, TREE_COLUMNS, Entry
from webapp.client.types import Event
from webapp.scalars import Scalars

TREE_TOPICS = "tree.open,node.open,node.close,tree.close,run.resumed"
"""Kinds of events of which the table of a tree is made."""
TOPICS = f"step.end,agent.update,eval.result,metric.logged,run.described,{TREE_TOPICS}"
"""Kinds of events that say something to a tracker."""

_TREE_KINDS = frozenset(TREE_TOPICS.split(","))
_PNG_HEADER = 24
_MARKER = 0xFF
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of JPEG before the size of a picture."""
_LOGGED = ("texts", "tables", "histograms", "images")


class Entries:
    """Makes entries of the events of one run."""

    def __init__(self) -> None:
        self._scalars = Scalars()
        self._trees = _Trees()

    def of(self, event: Event) -> Entry | None:
        """Returns the entry; None if there is nothing to say."""
        payload, time = event.payload, event.milliseconds / 1000
        if event.kind in _TREE_KINDS:
            step, grown = self._trees.of(event.kind, payload)
            return Entry(event.seq, time, step, trees=grown) if grown else None
        if event.kind == "run.described":
            config = flat(payload.get("config", {}))
            return Entry(event.seq, time, 0, config=config) if config else None
        step = payload.get("step", 0)
        if event.kind == "metric.logged":
            fields = {name: payload.get(name, {}) for name in _LOGGED}
            numbers = dict(payload.get("numbers", {}))
            numbers |= {name: float(text) for name, text in payload.get("nonfinite", {}).items()}
            return Entry(event.seq, time, step, numbers, **fields)
        names, values, _gaps = self._scalars.of(event.kind, payload)
        numbers = dict(zip(names, map(float, values), strict=True))
        return Entry(event.seq, time, step, numbers) if numbers else None


class _Trees:
    """Trees that grow, each of which becomes a table when it is closed.

    Invariant: the name of a table, `trees/K` for the tree of its step that is closed as the K-th,
    depends on earlier events alone, so a mirror that goes on uses the same names.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[int, dict[int, list[Any]]]] = {}
        """Step and rows by node, by tree."""
        self._closed: Counter[int] = Counter()
        """Trees that were closed, by step."""

    def of(self, kind: str, payload: Mapping[str, Any]) -> tuple[int, dict[str, dict[str, Any]]]:
        """Returns the step and, at the end of a tree, its table by name."""
        if kind == "run.resumed":  # steps after its checkpoint are made again
            self._open.clear()
            self._closed.clear()
            return 0, {}
        tree = payload["tree"]
        if kind == "tree.open":
            problem = [0, None, "", payload.get("statement") or payload.get("problem", ""), None]
            self._open[tree] = payload["step"], {0: problem}
            return 0, {}
        if kind == "tree.close":
            return self._table(*self._open.pop(tree, (0, {})))
        _, rows = self._open.get(tree, (0, {}))
        node = payload["node"]
        if kind == "node.open":
            rows[node] = [node, payload["parent"], payload["agent"], "", None]
        elif node in rows:
            rows[node][TEXT:] = [payload.get("program", ""), payload.get("score")]
        return 0, {}

    def _table(
        self, step: int, rows: dict[int, list[Any]]
    ) -> tuple[int, dict[str, dict[str, Any]]]:
        if not rows:
            return step, {}
        self._closed[step] += 1
        table = {"columns": list(TREE_COLUMNS), "rows": list(rows.values())}
        return step, {f"trees/{self._closed[step]}": table}


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Returns settings with the path of each as its name, joined by dots."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found


def samples(histogram: Mapping[str, list[float]]) -> list[tuple[float, float, float]]:
    """Returns the bins of a histogram: left edge, right edge, count."""
    edges = histogram["edges"]
    return list(zip(edges[:-1], edges[1:], histogram["counts"], strict=True))


def table_text(table: Mapping[str, Any]) -> str:
    """Returns a table in Markdown, for a tracker that has only texts."""
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    return "\n".join("| " + " | ".join(_cell(one) for one in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def picture(image: Mapping[str, str]) -> bytes:
    """Returns the bytes of the file of an image."""
    return base64.b64decode(image["data"])


def size_of(content: bytes) -> tuple[int, int]:
    """Returns width and height in pixels of a PNG (ISO/IEC 15948) or JPEG (ITU-T T.81, B.2.2)
    file; zeros if it has none."""
    if content.startswith(b"\x89PNG") and len(content) >= _PNG_HEADER:
        width, height = struct.unpack(">II", content[16:_PNG_HEADER])
        return width, height
    at = 2
    while at + 9 <= len(content) and content[at] == _MARKER:
        marker, length = content[at + 1], int.from_bytes(content[at + 2 : at + 4], "big")
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return 0, 0
