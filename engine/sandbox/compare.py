"""When a returned value counts as the expected one.

Invariant: equality is exact in type as well as value at every depth: True, 1 and 1.0 are three
different answers, and so are [1] and (1,). nan equals nan, and 0.0 equals -0.0.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def same_value(left: Any, right: Any) -> bool:
    """Exact equality of two plain values."""
    try:
        return _key(left) == _key(right)
    except RecursionError:
        return False


def _key(value: Any) -> Hashable:
    """A hashable form in which exactly the same values are equal."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind, tuple([_key(item) for item in value])
    if kind is set or kind is frozenset:
        return kind, frozenset([_key(item) for item in value])
    if kind is dict:
        return kind, len(value), frozenset([(_key(k), _key(v)) for k, v in value.items()])
    if kind is complex:
        return kind, _key(value.real), _key(value.imag)
    if kind is float and value != value:
        return kind, "nan"
    return kind, value
