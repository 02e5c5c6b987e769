"""What a program logs, sorted into the fields of a `metric.logged` event. Pure, but for the mark of
an incremental table.

Invariants: everything fits the server's bounds; what exceeds one is cut, and says so. Nested
dictionaries become names with dots, as with W&B.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from webapp.client.tracking import limits
from webapp.client.tracking.media import (
    Histogram,
    Image,
    Media,
    NotKept,
    Plotly,
    Table,
    Text,
    has,
    is_dataframe,
)

Fields = dict[str, dict[str, Any]]

_SMALL_ARRAY = 1
_IMAGE = "an image, which a table does not keep"
_LARGEST = limits.LARGEST


def sorted_values(data: Mapping[str, Any]) -> Fields:
    """Returns the values by field of the event: numbers, nonfinite, texts, tables, histograms,
    images.

    Raises:
        TypeError: `data` is no dictionary with texts as keys.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"log: give a dictionary of names and values, not {type(data).__name__}")
    numbers: dict[str, Any] = {}
    fields: Fields = {"numbers": numbers}
    for key, value in data.items():
        # The usual case: a finite number. Comparisons with NaN are false.
        if type(value) is float and -_LARGEST < value < _LARGEST and type(key) is str:
            numbers[name_of(key)] = value
        else:
            if not isinstance(key, str):
                raise TypeError(f"log: the name {key!r} is no text")
            _add(fields, key, value, 0)
    return {field: values for field, values in fields.items() if values}


@lru_cache(maxsize=16_384)
def name_of(name: str) -> str:
    """Returns the name as the server takes it; a long one is cut, and ends with its hash."""
    plain = "".join(one if one.isprintable() and one != "\\" else "_" for one in name)
    cleaned = plain or "_"
    if len(cleaned) + cleaned.count("/") + cleaned.count("~") <= limits.LONGEST_NAME:
        return cleaned
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    kept = cleaned[: limits.LONGEST_NAME // 2 - 6]
    return f"{kept}...{digest}"


_BLANK = frozenset(
    " \u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
).union(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Printable characters that show nothing; the server refuses a name of them alone."""


def is_shown(name: str) -> bool:
    """Returns whether a name has printable characters alone, and shows at least one."""
    return name.isprintable() and not _BLANK.issuperset(name)


def text_of(text: str, longest: int = limits.LONGEST_TEXT) -> str:
    """Returns a text that the server can store; a long one is cut, and says so."""
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if len(text) <= longest:
        return text
    end = f" ... [{len(text)} characters]"
    return text[: longest - len(end)] + end


def _add(fields: Fields, key: str, value: Any, depth: int) -> None:
    if isinstance(value, Mapping) and depth < limits.DEEPEST:
        for inner, one in value.items():
            _add(fields, f"{key}.{inner}", one, depth + 1)
        return
    name = name_of(key)
    if isinstance(value, bool | int | float):
        _add_number(fields, name, value)
    elif isinstance(value, str):
        _put(fields, "texts", name, text_of(value))
    elif isinstance(value, Histogram):
        _add_histogram(fields, name, value)
    elif isinstance(value, Table):
        _put(fields, "tables", name, table_of(value))
    elif isinstance(value, Image) and not value.text:
        image = {**value.as_json(), "caption": text_of(value.caption, limits.LONGEST_CELL)}
        _put(fields, "images", name, image)
    elif isinstance(value, Text | NotKept | Image):
        _put(fields, "texts", name, text_of(value.text))
    elif _is_list_of_media(value):
        for index, one in enumerate(value):
            _add(fields, key if len(value) == 1 else f"{key}.{index}", one, depth)
    elif has(value, "savefig"):  # a figure of matplotlib, or its module
        _add(fields, key, Image(value), depth)
    elif is_dataframe(value):
        _put(fields, "tables", name, table_of(Table(dataframe=value)))
    elif has(value, "to_plotly_json"):
        _put(fields, "texts", name, Plotly().text)
    elif value is not None:
        _add_other(fields, name, value)


def _is_list_of_media(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(
        isinstance(one, Media) for one in value
    )  # fmt: skip


def _add_other(fields: Fields, name: str, value: Any) -> None:
    """Adds a number of numpy or torch, an array as its histogram, or anything else as a text."""
    # A value's own methods may raise anything, and no training ends because of a value.
    with suppress(Exception):
        if hasattr(value, "tolist") and hasattr(value, "shape"):
            if math.prod(value.shape) <= _SMALL_ARRAY:
                _add_number(fields, name, value.item())
            else:
                _add_histogram(fields, name, Histogram(value))
            return
        if hasattr(value, "item"):
            _add_number(fields, name, value.item())
            return
    _put(fields, "texts", name, text_of(_shown(value)))


def _add_number(fields: Fields, name: str, value: Any) -> None:
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the range of floats
        number = math.inf if value > 0 else -math.inf
    if -_LARGEST < number < _LARGEST:
        fields["numbers"][name] = number
    else:
        shown = "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
        _put(fields, "nonfinite", name, shown)


def _add_histogram(fields: Fields, name: str, value: Histogram) -> None:
    _put(fields, "histograms", name, value.as_json())


def _put(fields: Fields, field: str, name: str, value: Any) -> None:
    fields.setdefault(field, {})[name] = value


def _shown(value: Any) -> str:
    try:
        return json.dumps(plain(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return written(value, repr)


def written(value: Any, how: Callable[[Any], str] = str) -> str:
    """Returns a value's own text; of one whose method raises, its type and what it raised."""
    try:
        return how(value)
    except Exception as error:
        if isinstance(value, int):  # of more digits than Python writes
            return hex(value)
        return f"({type(value).__name__}: {type(error).__name__} when it was shown)"


def table_of(table: Table) -> dict[str, Any]:
    """Returns a table within the bounds: first columns, first rows, long cells cut; of an
    incremental table the rows that are new, which count as recorded then."""
    given = table.rows_to_record()
    columns = [text_of(name, limits.LONGEST_CELL) for name in table.columns[: limits.MOST_COLUMNS]]
    columns = columns or ["(empty)"]
    room, size, rows = limits.MOST_BYTES // 2, 0, []
    for row in given[: limits.MOST_CELLS // len(columns)]:
        cells = [_cell(value) for value in row[: len(columns)]]
        size += len(msgspec.json.encode(cells))
        if size > room:
            break
        rows.append(cells)
    return {"columns": columns, "rows": rows, "left_out": len(given) - len(rows)}


def _cell(value: Any) -> str | float | bool | None:
    if has(value, "item") and not isinstance(value, str):
        try:
            value = value.item()
        except Exception:
            value = written(value, repr)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        number = float(value) if abs(value) < 1e300 else math.nan
        if math.isfinite(number):
            return number
        return text_of(written(value), limits.LONGEST_CELL)
    if isinstance(value, Text | NotKept | Image):
        value = value.text or _IMAGE
    return text_of(value if isinstance(value, str) else _shown(value), limits.LONGEST_CELL)


def plain(value: Any, depth: int = 0) -> Any:
    """Returns settings or a summary as JSON values: what is none is written as its text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, int):
        if abs(value) < 2**53:
            return int(value)
        return text_of(written(value), limits.LONGEST_CELL)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if depth >= limits.DEEPEST - 2:
        return text_of(written(value, repr), limits.LONGEST_CELL)
    with suppress(Exception):  # of a container's own methods
        return _plain_items(value, depth + 1)
    return text_of(written(value), limits.LONGEST_CELL)


def _plain_items(value: Any, depth: int) -> Any:
    """Returns a container's items as JSON values. Raises TypeError for any other value."""
    if isinstance(value, Mapping):
        return {text_of(written(key), 200): plain(one, depth) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one, depth) for one in value]
    if isinstance(value, Text | NotKept | Image):
        return text_of(value.text or _IMAGE, limits.LONGEST_CELL)
    if hasattr(value, "tolist"):  # of numpy or torch
        return plain(value.tolist(), depth)
    if hasattr(value, "__dict__") and type(value).__name__ == "Namespace":  # of argparse
        return plain(vars(value), depth)
    raise TypeError("no container")


def fits(fields: Fields, size: int) -> bool:
    """Returns whether one event may hold these values, whose JSON has `size` bytes."""
    return size <= _ROOM and len(fields.get("numbers", ())) <= limits.MOST_NUMBERS


def parts(fields: Fields) -> list[Fields]:
    """Returns the same values as several events that each fit the bounds of one."""
    done: list[Fields] = []
    pending: Fields = {}
    count = size = 0
    for field, values in fields.items():
        for name, value in values.items():
            weight = len(msgspec.json.encode({name: value})) + 16
            if count and (size + weight > _ROOM or count == limits.MOST_NUMBERS):
                done.append(pending)
                pending, count, size = {}, 0, 0
            pending.setdefault(field, {})[name] = value
            count, size = count + 1, size + weight
    return [*done, pending]


_ROOM = limits.MOST_BYTES - 4096
