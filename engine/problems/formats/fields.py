"""Reader of the fields of published data sets' rows.

Invariant: a field that does not conform to its format raises `RowError` with its name, value and
remedy; nothing is guessed.
"""

from __future__ import annotations

import json
import keyword
import math
from typing import Any

from engine.problems.containers.text import parsed
from engine.problems.problem import Limits
from engine.sandbox.guest.literals import LiteralError, read_literal, to_literal

_SHOWN_CHARS = 200
_BEYOND = 1e18  # no limit is that large; a larger int may exceed all floats


class RowError(ValueError):
    """Raised for a row that cannot become a problem."""

    def __init__(self, field: str, value: Any, remedy: str):
        super().__init__(f"{field}: {remedy}")
        self.field = field
        self.value = value[:_SHOWN_CHARS] if isinstance(value, str | bytes) else value
        self.remedy = remedy


class Fields:
    """Fields of one row, by name and kind. NaN, which tables of pandas have where a cell is empty,
    is null."""

    def __init__(self, data: dict[str, Any], position: int):
        self.data = {name: None if value != value else value for name, value in data.items()}
        self.position = position
        """Number of the row in its file, from 1; used as id of rows that have none."""

    def text(self, name: str, *others: str) -> str:
        """Returns the non-blank text of the first of these fields that is not null."""
        values = (self.data.get(field) for field in (name, *others))
        value = next((value for value in values if value is not None), None)
        if not isinstance(value, str) or not value.strip():
            raise RowError(name, value, "must be a text that is not empty")
        return value

    def text_or_empty(self, name: str, *others: str) -> str:
        """Returns the first of these fields that is a text; empty if none is."""
        return next((v for n in (name, *others) if isinstance(v := self.data.get(n), str)), "")

    def texts(self, name: str) -> list[str]:
        """Returns a list of texts, which may be written as JSON or as a Python literal; empty if
        the field is missing, null or a blank text."""
        value = self.data.get(name)
        if isinstance(value, str):
            value = _written(value) if value.strip() else None
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise RowError(name, self.data.get(name), "must be a list of texts")
        return value

    def json(self, name: str) -> Any:
        """Returns the parsed JSON of a text field, and any other value unchanged.

        Returns None if the field is missing, null or a blank text. JSON of a JSON text, as tables
        have it whose writer encoded twice, is parsed twice; a Python literal, as the CSV of pandas
        has it for lists and dicts, is read as well.
        """
        value = self.data.get(name)
        if not isinstance(value, str) or not value.strip():
            return None if isinstance(value, str) else value
        result = _written(value)
        if isinstance(result, ValueError):
            raise RowError(name, value, f"the text {result}")
        return result

    def id(self, name: str, prefix: str) -> str:
        """Returns the row's id if it is a text; else `prefix`/id, with its position if it has
        none."""
        value = self.data.get(name)
        if isinstance(value, str) and value.strip():
            return value
        try:
            return f"{prefix}/{self.position if value is None else value}"
        except (ValueError, RecursionError):  # an integer with too many digits, nested lists
            raise RowError(name, value, "must be a text or a short number") from None

    def tags(self, *names: str) -> tuple[str, ...]:
        """Returns the texts of these fields, each a text or a list of texts, without duplicates."""
        texts: list[str] = []
        for name in names:
            value = self.data.get(name)
            items = value if isinstance(value, list) else [value]
            texts += [item for item in items if isinstance(item, str) and item]
        return tuple(dict.fromkeys(texts))


def _written(text: str) -> Any:
    """Returns the value of a text in JSON, encoded once or twice, or of a list or dict as Python
    writes it; the ValueError of JSON if it is neither."""
    value = parsed(text)
    if isinstance(value, str):
        value = parsed(value)
    if isinstance(value, ValueError) and text.lstrip()[:1] in ("[", "{"):
        try:
            return read_literal(text.strip())
        except LiteralError:
            return value
    return value


def function_name(field: str, value: Any) -> str:
    """Returns the name of the function that a row requests; raises `RowError` if it is none: no
    program could define it."""
    if isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value):
        return value
    raise RowError(field, value, "must be the name of a function, as Python writes one")


def plain(name: str, value: Any) -> Any:
    """Returns the value; raises `RowError` if it cannot be sent to a sandbox."""
    try:
        to_literal(value)
    except LiteralError as error:
        raise RowError(name, value, f"{error}; only plain values can be tested") from None
    return value


def seconds(value: Any) -> float | None:
    """Returns seconds from a number, a text like "2.0 seconds", or {"seconds": 2, "nanos": 5e8};
    None if it is not a valid limit."""
    if isinstance(value, dict):
        parts = [value.get("seconds") or 0, value.get("nanos") or 0]
        if not all(type(part) in (int, float) for part in parts):
            return None
        whole, nanos = (min(part, _BEYOND) for part in parts)
        value = whole + nanos / 1e9
    return _number(value, Limits.MAX_SECONDS)


def megabytes(value: Any) -> int | None:
    """Returns megabytes, rounded up, from a number or a text like "256 megabytes"; None if it is
    not a valid limit."""
    number = _number(value, Limits.MAX_MEMORY_MB)
    return None if number is None else math.ceil(number)


def _number(value: Any, most: float) -> float | None:
    """Returns a number above 0 and at most `most`; None for any other value."""
    if isinstance(value, str):
        try:
            value = float(value.split()[0])
        except (ValueError, IndexError):
            return None
    if type(value) not in (int, float) or not 0 < value <= most:
        return None
    return float(value)


def as_json(value: Any) -> str:
    """Returns the JSON of a value, for a statement."""
    return json.dumps(value, ensure_ascii=False)
