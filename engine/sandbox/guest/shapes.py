"""Results that are no plain values and yet can be judged: iterators, views, and values of classes
of the standard library, such as Counter, deque, Fraction and date, however deep in a list.

The program's process writes such a result as plain values, and the judge makes it again with its
own classes, so that `==`, iteration and methods do what the test's author saw. Standard library
only: loaded by path in the zygote.

Invariant: a written value is a constant, or `(shape, items)` with a list of written values; each
shape is made of its items by the table below, and by nothing that the program names.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn

from literals import MAX_DEPTH, LiteralError, LiteralTooLong, hashable

_CONSTANTS = {bool, type(None), int, float, complex, str, bytes}
_CONTAINERS = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset", dict: "dict"}
_NUMBERS: tuple[Any, ...] = (bytes, int, float, complex)
_ITERATOR, _ENDLESS = "iterator", "endless"
_MOST_OF_ENDLESS = 1000
"""Items of an iterator that are written if all of them are too long."""
_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items",
          range: "range", bytearray: "bytearray"}  # fmt: skip
_LIBRARY = {
    ("collections", "Counter"), ("collections", "OrderedDict"), ("collections", "deque"),
    ("fractions", "Fraction"), ("decimal", "Decimal"), ("datetime", "date"), ("datetime", "time"),
    ("datetime", "datetime"), ("datetime", "timedelta"),
}  # fmt: skip


def shape_of(value: Any) -> str:
    """Returns the shape of a result that is no plain value: an iterator of Python itself (of a
    generator, `map`, `zip`, ...), a view of a dict, a range, or an object of one of the library's
    classes; empty for any other value."""
    kind = type(value)
    if kind in _VIEWS:
        return _VIEWS[kind]
    module = getattr(kind, "__module__", "")
    if module in ("builtins", "itertools"):
        return _ITERATOR if hasattr(kind, "__next__") else ""
    return kind.__name__ if (module, kind.__name__) in _LIBRARY else ""


def written(value: Any, most: int) -> Any:
    """Returns a result as constants and `(shape, items)`; `most` bounds the number of its items.

    Raises:
        LiteralError: it holds an object of another class, or is nested too deeply.
        LiteralTooLong: it has more items. Of an iterator that has, as one that never ends, the
            first ones are written.
    """
    return _Writer(most).written(value, 0)


class _Writer:
    def __init__(self, most: int):
        self._room = most

    def written(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _CONSTANTS:
            return value
        shape = _CONTAINERS.get(kind) or shape_of(value)
        if not shape:
            shape, value = self._plain(value)
        if depth >= MAX_DEPTH:
            raise LiteralError(f"value is nested more than {MAX_DEPTH} deep")
        if not shape:
            return value
        if shape == _ITERATOR:
            shape, value = self._started(value)
        return shape, [self.written(item, depth + 1) for item in self._items(shape, value)]

    def _plain(self, value: Any) -> tuple[str, Any]:
        """Returns an object of a subclass of a plain type as one of that type, with its shape."""
        for base, shape in _CONTAINERS.items():
            if isinstance(value, base):
                return shape, base(value)
        # `str` of a member of an enumeration is its name.
        if isinstance(value, str):
            return "", str.__str__(value)
        for constant in _NUMBERS:
            if isinstance(value, constant):
                return "", constant(value)
        raise LiteralError(f"{type(value).__name__} is not a plain value")

    def _items(self, shape: str, value: Any) -> list[Any]:
        match shape:
            case "range":
                return [value.start, value.stop, value.step]
            case "dict" | "Counter" | "OrderedDict":
                return self._taken(item for pair in value.items() for item in pair)
            case "deque":
                return [value.maxlen, *self._taken(value)]
            case "Fraction":
                return [value.numerator, value.denominator]
            case "Decimal":
                return [str(value)]
            case "date" | "time" | "datetime":
                return [value.isoformat()]
            case "timedelta":
                return [value.days, value.seconds, value.microseconds]
            case "bytearray":
                return [bytes(value)]
            case "items":
                return self._taken(item for pair in value for item in pair)
        return self._taken(value)

    def _started(self, iterator: Any) -> tuple[str, list[Any]]:
        """Returns the items of an iterator; the first ones if all together are too long, as they
        are if it never ends."""
        items: list[Any] = []
        first, room = 0, self._room
        for item in iterator:
            room -= _least_chars(item)
            if room < 0:
                self._room -= first
                return _ENDLESS, items[:first]
            items.append(item)
            first += len(items) <= _MOST_OF_ENDLESS and room > self._room - self._room // 8
        self._room -= len(items)
        return _ITERATOR, items

    def _taken(self, items: Iterable[Any]) -> list[Any]:
        taken = list(islice(items, self._room + 1))
        self._room -= len(taken)
        if self._room < 0:
            raise LiteralTooLong
        return taken


def _least_chars(item: Any) -> int:
    """Returns a lower bound of the characters that an item of a list takes."""
    if type(item) is int:
        return 3 + item.bit_length() // 4
    return 3 + (len(item) if type(item) in (str, bytes) else 0)


def _endless(items: list[Any], at_end: Callable[[], NoReturn]) -> Iterator[Any]:
    yield from items
    at_end()


def made(value: Any, at_end: Callable[[], NoReturn]) -> Any:
    """Returns a written value as the judge's own. `at_end` is called when a test takes all written
    items of an iterator that has more.

    Raises:
        Exception: of any kind, if it is not one that `written` returns.
    """
    if type(value) is not tuple:
        if type(value) not in _CONSTANTS:
            raise TypeError("no constant")
        return value
    shape, items = value
    if type(shape) is not str or type(items) is not list:
        raise TypeError("no shape")
    if shape == _ENDLESS:
        return _endless([made(item, at_end) for item in items], at_end)
    return _made(shape, [made(item, at_end) for item in items])


def _made(shape: str, items: list[Any]) -> Any:
    match shape:
        case "list":
            return items
        case "tuple":
            return tuple(items)
        case "set" | "frozenset":
            return {"set": set, "frozenset": frozenset}[shape](hashable(items))
        case "iterator":
            return iter(items)
        case "dict":
            return _dict(items)
        case "keys":
            return dict.fromkeys(hashable(items)).keys()
        case "values":
            return dict(enumerate(items)).values()
        case "items":
            return _dict(items).items()
        case "range":
            return range(*items)
        case "bytearray":
            return bytearray(*items)
    return _of_library(shape, items)


def _of_library(shape: str, items: list[Any]) -> Any:
    """Returns an object of a class of the library, which is imported where it is needed alone."""
    import collections
    import datetime
    import decimal
    import fractions

    match shape:
        case "Counter" | "OrderedDict":
            return getattr(collections, shape)(_dict(items))
        case "deque":
            return collections.deque(items[1:], items[0])
        case "Fraction":
            return fractions.Fraction(*items)
        case "Decimal":
            return decimal.Decimal(*items)
        case "date" | "time" | "datetime":
            return getattr(datetime, shape).fromisoformat(*items)
        case "timedelta":
            return datetime.timedelta(*items)
    raise ValueError(shape)


def _dict(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(hashable(items[::2]), items[1::2], strict=True))
