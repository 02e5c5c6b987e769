"""JSON of strangers, whose numbers are no longer than a computer converts in no time.

Invariant: a number that is too long, or larger than a float holds, is refused before it is
converted: a million digits would take half a minute.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine import MOST_DIGITS

_PIECE = 4000  # Python converts no more than 4300 at once by default
_MOST_SHOWN = 200


class LongNumber(ValueError):
    """Raised for a number that is not converted; the message names it, its field and the remedy."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Path of a value: that of what holds it, and its own part, such as `.name` or `[3]`."""

    before: _Parts | None
    name: str


@dataclass(frozen=True, slots=True)
class _Refused:
    """Stands where a number cannot be converted, until its field is known."""

    reason: str


def loads(text: bytes | str, **hooks: Any) -> Any:
    """Returns the JSON value; `hooks` are those of `json.loads`. A byte order mark before it, which
    some editors and joined files have, is no part of it.

    Raises:
        LongNumber: it holds a number that is too long or too large.
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    refused: list[_Refused] = []
    if isinstance(text, str):
        text = text.removeprefix("\ufeff")

    def number(convert: Callable[[str], Any], digits: str) -> Any:
        value = _too_long(digits) or convert(digits)
        if isinstance(value, _Refused):
            refused.append(value)
        return value

    hooks["parse_float"] = partial(number, _float)
    try:
        value = json.loads(text, **hooks)
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise
        # Python refuses to convert integers of more than MOST_DIGITS digits.
        hooks["parse_int"] = partial(number, _integer)
        value = json.loads(text, **hooks)
    if refused:
        raise LongNumber(_message(value, refused[0]))
    return value


def _too_long(digits: str) -> _Refused | None:
    number = len(digits.lstrip("-"))
    if number <= MOST_DIGITS:
        return None
    return _Refused(f"a number of {number:,} digits ({MOST_DIGITS:,} at most)")


def _float(digits: str) -> float | _Refused:
    value = float(digits)
    return value if math.isfinite(value) else _Refused(f"{digits[:40]}, too large for a float")


def _integer(digits: str) -> int:
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    value = 0
    for start in range(0, len(digits), _PIECE):
        piece = digits[start : start + _PIECE]
        value = value * 10 ** len(piece) + int(piece)
    return sign * value


def _message(value: Any, refused: _Refused) -> str:
    field = _field_of(value, refused)
    where = f" in {field}" if field else ""
    return f"holds {refused.reason}{where}; round it, write it as a text, or leave the field out"


def _field_of(value: Any, sought: _Refused) -> str:
    """Returns the path of a value, such as `tests[0].expected`; without recursion, so that no depth
    exhausts the stack."""
    pending: list[tuple[Any, _Parts | None]] = [(value, None)]
    while pending:
        one, parts = pending.pop()
        if one is sought:
            return _path(parts)
        if isinstance(one, dict):
            pending += [(item, _Parts(parts, f".{key}")) for key, item in one.items()]
        elif isinstance(one, list):
            pending += [(item, _Parts(parts, f"[{index}]")) for index, item in enumerate(one)]
    return ""


def _path(parts: _Parts | None) -> str:
    names: list[str] = []
    while parts is not None:
        names.append(parts.name)
        parts = parts.before
    path = "".join(reversed(names)).removeprefix(".")
    return path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}…"
