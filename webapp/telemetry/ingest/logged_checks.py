"""Bounds of what other programs log, checked before anything is stored.

Invariant: each refusal names the event, the field and the bound. `webapp.client.tracking.limits`
has the same bounds, within which the client keeps what it sends.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from engine.events.vocabulary import Event
from webapp.experiments.annotations.annotations import (
    InvalidAnnotation,
    clean_notes,
    clean_tags,
)
from webapp.experiments.models import Run
from webapp.experiments.tracked_runs import config_of
from webapp.rest.problem_details import Invalid
from webapp.scalars import LARGEST, LOGGED, logged_name
from webapp.telemetry.ingest.logged import KINDS, MOST_NAMES, names_in, stored_names
from webapp.telemetry.models import Metric

LONGEST_NAME = 180
"""Characters of a name, "/" and "~" counted twice."""
MOST_NUMBERS = 2000
"""Numbers of one event."""
MOST_SERIES = 10_000
"""Names of numbers of one run."""
LONGEST_TEXT = 65_536
MOST_CELLS = 10_000
MOST_COLUMNS = 100
LONGEST_CELL = 4096
MOST_BINS = 512
MOST_IMAGE_BYTES = 262_144
"""Bytes of the file of a picture."""
_MAGIC = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff"}
"""First bytes of a file of each format."""
MOST_BYTES = 524_288
"""Bytes of one event's payload as JSON."""
MOST_CONFIG_BYTES = 1_048_576
"""Bytes of a run's settings, or of its summary, as JSON."""
DEEPEST = 20
"""Levels of settings and summary."""


def refuse_bad_values(path: str, kind: str, payload: dict[str, Any]) -> None:
    """Raises `Invalid` if a `metric.logged` or `run.described` payload exceeds a bound; `path`
    names it in the request."""
    if kind == "metric.logged":
        _refuse_logged(path, payload)
    elif kind == "run.described":
        _refuse_description(path, payload)


def refuse_too_many(run: Run, events: Sequence[Event], start: int) -> None:
    """Raises `Invalid` if these new events would give the run too many names or too large settings.
    The first has the index `start` in the request. The caller holds the run's row lock."""
    described = [(n, e.payload) for n, e in enumerate(events, start) if e.kind == "run.described"]
    if described and not run.tracked:
        reason = (
            "only a tracked run is described by its program: its settings are given at creation"
        )
        raise Invalid(f"events.{described[0][0]}.kind", "run.described", reason)
    for field, stored in (("config", config_of(run)), ("summary", run.result.get("summary", {}))):
        given = [(index, payload[field]) for index, payload in described if field in payload]
        if given:
            _refuse_settings(field, stored, given)
    _refuse_names(run, events, start)
    _refuse_series(run, events, start)


def _refuse_settings(
    field: str, stored: Mapping[str, Any], given: Sequence[tuple[int, dict[str, Any]]]
) -> None:
    """Raises `Invalid` for the first of these events, by its index, whose settings would be too
    many, merged with those before."""
    sizes = {key: _share(key, value) for key, value in stored.items()}
    total = 1 + sum(sizes.values())
    for index, added in given:
        for key, value in added.items():
            size = _share(key, value)
            total += size - sizes.get(key, 0)
            sizes[key] = size
        if total > MOST_CONFIG_BYTES:
            reason = f"the run's {field} may have {MOST_CONFIG_BYTES} bytes as JSON in all"
            raise Invalid(f"events.{index}.payload.{field}", f"{total} bytes", reason)


def _share(key: str, value: Any) -> int:
    """Bytes of one item of an object as JSON, with the comma or brace before it."""
    return _size({key: value}) - 1


def _refuse_names(run: Run, events: Sequence[Event], start: int) -> None:
    new = names_in(events).keys()
    if not new:
        return
    names = stored_names(run)
    if len(names | new) <= MOST_NAMES:
        return
    for index, event in enumerate(events, start):
        names |= names_in([event]).keys()
        if (total := len(names)) > MOST_NAMES:
            kinds = ", ".join(KINDS)
            reason = f"a run may have {MOST_NAMES} names of {kinds}: log under fewer names"
            raise Invalid(f"events.{index}.payload", f"{total} names", reason)


def _refuse_series(run: Run, events: Sequence[Event], start: int) -> None:
    logged = [
        (index, event.payload.get("numbers", ()))
        for index, event in enumerate(events, start)
        if event.kind == "metric.logged"
    ]
    new = {name for _, numbers in logged for name in numbers}
    if not new:
        return
    metrics = Metric.objects.filter(run=run, name__startswith=LOGGED)
    if metrics.count() + len(new) <= MOST_SERIES:
        return
    names = set(metrics.values_list("name", flat=True))
    for index, numbers in logged:
        names.update(map(logged_name, numbers))
        if (total := len(names)) > MOST_SERIES:
            reason = f"a run may have {MOST_SERIES} names of numbers: log under fewer names"
            raise Invalid(f"events.{index}.payload.numbers", f"{total} names", reason)


def _refuse_logged(path: str, payload: dict[str, Any]) -> None:
    if (size := _size(payload)) > MOST_BYTES:
        raise Invalid(path, f"{size} bytes", f"log at most {MOST_BYTES} bytes at once")
    if len(payload.get("numbers", ())) > MOST_NUMBERS:
        count = len(payload["numbers"])
        raise Invalid(f"{path}.numbers", count, f"log at most {MOST_NUMBERS} numbers at once")
    for field in ("numbers", *KINDS):
        for name in payload.get(field, ()):
            _refuse_name(f"{path}.{field}", name)
    for name, number in payload.get("numbers", {}).items():
        if abs(number) >= LARGEST:
            reason = f"log numbers below {LARGEST:g}, and what is beyond as nonfinite"
            raise Invalid(f"{path}.numbers.{name}", number, reason)
    for name, text in payload.get("texts", {}).items():
        if len(text) > LONGEST_TEXT:
            reason = f"log texts of at most {LONGEST_TEXT} characters"
            raise Invalid(f"{path}.texts.{name}", f"{len(text)} characters", reason)
    for name, table in payload.get("tables", {}).items():
        _refuse_table(f"{path}.tables.{name}", table)
    for name, histogram in payload.get("histograms", {}).items():
        _refuse_histogram(f"{path}.histograms.{name}", histogram)
    for name, image in payload.get("images", {}).items():
        _refuse_image(f"{path}.images.{name}", image)


def _refuse_name(path: str, name: str) -> None:
    if not 1 <= len(logged_name(name)) - len(LOGGED) <= LONGEST_NAME or not _is_plain(name):
        reason = (
            f"give a name of 1 to {LONGEST_NAME} characters ('/' and '~' count twice) of "
            "printable characters without backslashes"
        )
        raise Invalid(path, name[:200], reason)


def _is_plain(name: str) -> bool:
    return name.isprintable() and "\\" not in name


def _refuse_table(path: str, table: dict[str, Any]) -> None:
    columns, rows = table["columns"], table["rows"]
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise Invalid(f"{path}.columns", len(columns), f"give 1 to {MOST_COLUMNS} columns")
    if len(columns) * len(rows) > MOST_CELLS:
        reason = f"a table may have {MOST_CELLS} cells: log fewer rows"
        raise Invalid(f"{path}.rows", len(rows), reason)
    if table["left_out"] < 0:
        raise Invalid(f"{path}.left_out", table["left_out"], "give 0 or more")
    for index, row in enumerate(rows):
        if len(row) != len(columns):
            reason = f"every row has as many cells as there are columns, {len(columns)}"
            raise Invalid(f"{path}.rows.{index}", len(row), reason)
    for text in _texts(columns, rows):
        if len(text) > LONGEST_CELL:
            reason = f"a cell may have {LONGEST_CELL} characters"
            raise Invalid(path, f"{len(text)} characters", reason)


def _texts(columns: list[str], rows: list[list[Any]]) -> Iterator[str]:
    yield from columns
    yield from (cell for row in rows for cell in row if isinstance(cell, str))


def _refuse_histogram(path: str, histogram: dict[str, Any]) -> None:
    edges, counts = histogram["edges"], histogram["counts"]
    if not 1 <= len(counts) <= MOST_BINS or len(edges) != len(counts) + 1:
        reason = f"give 1 to {MOST_BINS} counts, and one edge more than counts"
        raise Invalid(path, f"{len(counts)} counts, {len(edges)} edges", reason)
    if not all(map(math.isfinite, (*edges, *counts))) or min(counts) < 0:
        raise Invalid(path, "", "give finite edges, and counts of at least 0")
    if any(low > high for low, high in pairwise(edges)):
        raise Invalid(f"{path}.edges", "", "give the edges in ascending order")


def _refuse_image(path: str, image: dict[str, Any]) -> None:
    try:
        content = base64.b64decode(image["data"], validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(f"{path}.data", "", "give the bytes of the file in base64") from None
    if len(content) > MOST_IMAGE_BYTES:
        reason = f"a picture may have {MOST_IMAGE_BYTES} bytes: make it smaller"
        raise Invalid(f"{path}.data", f"{len(content)} bytes", reason)
    if not content.startswith(_MAGIC[image["format"]]):
        raise Invalid(f"{path}.data", "", f"these are not the bytes of a {image['format']} file")
    if len(image["caption"]) > LONGEST_CELL:
        reason = f"a caption may have {LONGEST_CELL} characters"
        raise Invalid(f"{path}.caption", f"{len(image['caption'])} characters", reason)


def _refuse_description(path: str, payload: dict[str, Any]) -> None:
    for field in ("config", "summary"):
        if field in payload and _depth(payload[field]) > DEEPEST:
            raise Invalid(f"{path}.{field}", "", f"nest values at most {DEEPEST} levels deep")
    try:
        clean_tags(payload.get("tags", []))
        clean_notes(payload.get("notes", ""))
    except InvalidAnnotation as error:
        raise Invalid(f"{path}.{error.path}", error.value, error.reason) from None


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))
