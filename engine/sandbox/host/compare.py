"""Comparison of returned values and printed texts with expected ones.

Invariant: unless the problem's `Comparison` allows more, equality is exact in type as well as
value at every depth: True, 1 and 1.0 are three different answers, and so are [1] and (1,). nan
equals nan, and 0.0 equals -0.0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable
from decimal import Decimal, InvalidOperation
from typing import Any

from engine.sandbox.cases import Comparison

_MOST_EQUAL = 256  # up to so many equal hashes cost little
_WHOLE = re.compile(r"[+-]?[0-9]+")
_WORD = re.compile(r"[^ \n\t\r\v]+")
"""What CodeContests' checker takes for a word."""


def matches(actual: Any, expected: Any, comparison: Comparison) -> bool:
    """Whether a returned value equals the expected one, as the problem compares them."""
    if same_value(actual, expected):
        return True
    if comparison.tolerance is None and not comparison.loose_types:
        return False
    try:
        return _agree(actual, expected, comparison)
    except (RecursionError, _TooAlike):
        return False


def same_value(left: Any, right: Any) -> bool:
    """Whether two plain values are exactly equal."""
    try:
        return _same(left, right)
    except (RecursionError, _TooAlike):
        return False


def _same(left: Any, right: Any) -> bool:
    kind = type(left)
    if kind is not type(right):
        return False
    if kind in _ATOMS:
        return left == right
    if kind not in _SEQUENCES:
        return _key(left) == _key(right)
    if len(left) != len(right):
        return False
    kinds = set(map(type, left))
    if len(kinds) == 1 and kinds <= _ATOMS:
        return kinds == set(map(type, right)) and left == right
    return all(map(_same, left, right))


_ATOMS = {int, str, bytes, bool, type(None)}
"""Types whose values are the same if they are equal."""


def same_output(actual: str, expected: str, comparison: Comparison) -> bool:
    """Whether a printed text equals the expected one, by the rules of `engine.sandbox.cases`."""
    tolerance = comparison.tolerance
    match comparison.output:
        case "words":
            left, right = (_WORD.findall(text.lower()) for text in (actual, expected))
            return _same_words(left, right, _within(tolerance))
        case "decimals":
            return _same_lines(_stripped(actual), _stripped(expected), _same_decimals)
        case "lines":
            close = None if tolerance is None else _closeness(tolerance)
            left, right = (list(filter(None, _stripped(text))) for text in (actual, expected))
            return _same_lines(left, right, lambda a, b: _same_words(a.split(), b.split(), close))
    return same_text(actual, expected, tolerance)


def same_text(actual: str, expected: str, tolerance: float | None = None) -> bool:
    """Whether two texts are equal line by line, but for trailing whitespace and empty last lines.

    With a tolerance, lines are compared word by word, and words that are numbers as numbers:
    integers exactly, others within the tolerance.
    """
    left, right = _lines(actual), _lines(expected)
    if tolerance is None:
        return left == right
    close = _closeness(tolerance)
    return _same_lines(left, right, lambda a, b: _same_words(a.split(), b.split(), close))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_lines(actual: list[str], expected: list[str], same: Callable[[str, str], bool]) -> bool:
    return len(actual) == len(expected) and all(
        left == right or same(left, right) for left, right in zip(actual, expected, strict=True)
    )


def _same_decimals(actual: str, expected: str) -> bool:
    """Whether the words of two lines are equal as decimals, of which every digit counts."""
    left, right = actual.split(), expected.split()
    if len(left) != len(right):
        return False
    try:
        return all(Decimal(a) == Decimal(b) for a, b in zip(left, right, strict=True))
    except InvalidOperation:
        return False


def _same_words(
    actual: list[str], expected: list[str], close: Callable[[float, float], bool] | None
) -> bool:
    return len(actual) == len(expected) and all(
        left == right or _same_numeral(left, right, close)
        for left, right in zip(actual, expected, strict=True)
    )


def _same_numeral(actual: str, expected: str, close: Callable[[float, float], bool] | None) -> bool:
    """Whether two words are the same number: integers and, without `close`, all others exactly."""
    if "_" in actual or not actual.isascii():  # numbers in Python only
        return False
    if _WHOLE.fullmatch(actual) and _WHOLE.fullmatch(expected):
        # An off-by-one count is wrong, however large; its digits need not be converted.
        return _digits(actual) == _digits(expected)
    try:
        if close is None:
            return Decimal(actual) == Decimal(expected)
        return close(float(actual), float(expected))
    except (ValueError, InvalidOperation):
        return False


def _digits(whole: str) -> str:
    """Returns the numeral of an integer in the form that `str` writes."""
    digits = whole.lstrip("+-").lstrip("0")
    return f"-{digits}" if digits and whole.startswith("-") else digits or "0"


def _within(tolerance: float | None) -> Callable[[float, float], bool]:
    """Returns a test of whether two numbers differ by less than an absolute tolerance."""
    return lambda actual, expected: abs(actual - expected) < (tolerance or 0.0)


def _closeness(tolerance: float) -> Callable[[Any, Any], bool]:
    """Returns a test of whether two numbers differ by at most tolerance * max(1, |expected|)."""

    def close(actual: Any, expected: Any) -> bool:
        try:
            if actual == expected or (actual != actual and expected != expected):
                return True
            difference = abs(actual - expected)
            return math.isfinite(difference) and difference <= tolerance * max(1.0, abs(expected))
        except OverflowError:
            return False

    return close


def _agree(actual: Any, expected: Any, comparison: Comparison) -> bool:
    kind, other = type(actual), type(expected)
    if kind in _NUMBERS and other in _NUMBERS:
        return _same_number(actual, expected, comparison)
    if kind in _SEQUENCES and other in _SEQUENCES:
        return (
            (kind is other or comparison.loose_types)
            and len(actual) == len(expected)
            and all(_agree(a, b, comparison) for a, b in zip(actual, expected, strict=True))
        )
    loose = comparison.loose_types
    if kind is other is dict:
        by_key = {_key(name, loose): value for name, value in expected.items()}
        _distinct([_key(name, loose) for name in actual])
        return len(actual) == len(expected) and all(
            (key := _key(name, loose)) in by_key and _agree(value, by_key[key], comparison)
            for name, value in actual.items()
        )
    return _key(actual, loose) == _key(expected, loose)


_NUMBERS = {bool, int, float, complex}
_SEQUENCES = {list, tuple}


def _same_number(actual: Any, expected: Any, comparison: Comparison) -> bool:
    if type(actual) is not type(expected) and not comparison.loose_types:
        return False
    exact = comparison.tolerance is None or {type(actual), type(expected)} <= {bool, int}
    if exact:
        return actual == expected or (actual != actual and expected != expected)
    return _closeness(comparison.tolerance or 0.0)(actual, expected)


class _TooAlike(Exception):
    """Items of a set have so many equal hashes that it would take quadratic time to build."""


def _distinct(keys: list[Hashable]) -> frozenset[Hashable]:
    """Returns the set of keys. Raises _TooAlike, since the reader of the literals checked the
    hashes of the items, but their keys have others."""
    if len(keys) > _MOST_EQUAL and max(Counter(map(hash, keys)).values()) > _MOST_EQUAL:
        raise _TooAlike
    return frozenset(keys)


def _key(value: Any, loose: bool = False) -> Hashable:
    """Returns a hashable form of a value; two forms are equal if and only if the values are, or
    with `loose` if Python's `==` says so, but for a list and a tuple, which are equal, too."""
    kind = type(value)
    kind = _LOOSE.get(kind, kind) if loose else kind
    if kind is list or kind is tuple:
        return kind, tuple([_key(item, loose) for item in value])
    if kind is set or kind is frozenset:
        return kind, _distinct([_key(item, loose) for item in value])
    if kind is dict:
        items: list[Hashable] = [(_key(k, loose), _key(v, loose)) for k, v in value.items()]
        return kind, len(value), _distinct(items)
    if kind is complex and not loose:
        return kind, _key(value.real), _key(value.imag)
    if (kind is float or kind is complex) and value != value:
        return kind, "nan"
    return kind, value


_LOOSE = {tuple: list, frozenset: set, bool: complex, int: complex, float: complex}
