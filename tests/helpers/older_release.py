"""What an earlier release wrote and knew, out of its dump in `tests/data/schemas`."""

from __future__ import annotations

import json
import lzma
import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import Version

import webapp
from tests.helpers.kept_dump import DUMPS

_TABLE = re.compile(r"^CREATE TABLE public\.(\w+) \(\n(.*?)\n\);", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r'^    "?([a-z]\w*)"? ', re.MULTILINE)


def previous() -> Path:
    """Returns the dump of the release before this version."""
    releases = {Version(path.name.removesuffix(".sql.xz")): path for path in DUMPS.glob("*.xz")}
    before = [one for one in releases if one < Version(webapp.__version__)]
    return releases[max(one for one in before if not one.is_prerelease)]


@cache
def _text(dump: Path) -> str:
    return lzma.decompress(dump.read_bytes()).decode()


def columns(dump: Path) -> dict[str, set[str]]:
    """Returns the names of the columns of every table."""
    return {found[1]: set(_COLUMN.findall(found[2])) for found in _TABLE.finditer(_text(dump))}


def events_of_a_run(dump: Path) -> list[dict[str, Any]]:
    """Returns the events of the run that the dump has whole, from its first to its last one, as the
    lines of a log."""
    rows = _text(dump).partition("COPY public.telemetry_event ")[2].partition("\n\\.\n")[0]
    by_run: dict[str, list[dict[str, Any]]] = {}
    for row in rows.splitlines()[1:]:
        seq, time, kind, tree, node, payload, run = row.split("\t")
        event = {
            "seq": int(seq),
            "time": datetime.fromisoformat(time).timestamp(),
            "kind": kind,
            "tree": None if tree == "\\N" else int(tree),
            "node": None if node == "\\N" else int(node),
            "payload": json.loads(payload.replace("\\\\", "\\")),
        }
        by_run.setdefault(run, []).append(event)
    return next(run for run in by_run.values() if any(e["kind"] == "step.end" for e in run))
