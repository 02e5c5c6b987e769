"""Serializer of plain Python values as literals, the only format of untrusted values.

Invariant: only None, bool, int, float, complex, str, bytes and list, tuple, set, frozenset and
dict of them, each of exactly that type, can be written or read; all others are refused, so
neither direction ever runs a method of untrusted code. The module imports nothing of the project:
the sandbox loads it by path.
"""

import ast
import re
import warnings
from collections import Counter
from typing import Any

MAX_DEPTH = 100
_DECIMAL_BITS = 4096  # longer integers are written in hex, which is linear in time both ways
_MOST_DECIMALS = 1300  # what so many bits have, and a sign
_PLAIN = (bool, type(None), float, complex)
_CONSTANTS = (bool, type(None), int, float, complex, str, bytes)
_MOST_EQUAL = 256  # up to so many equal hashes cost little
_SHORT = 1 << 62  # what is shorter, `repr` of a whole list of integers writes at once
_BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})")}
_BASES = (dict, list, tuple, set, frozenset, str, bytes, int, float, complex)
_RATIONALS = {("fractions", "Fraction"), ("decimal", "Decimal")}
_EMPTY = {set: "set()", frozenset: "frozenset()"}
_NAMES = {"nan": float("nan"), "inf": float("inf")}


# An invalid escape in untrusted text is not worth a line in the log.
warnings.filterwarnings("ignore", module="<literal>")


class LiteralError(ValueError):
    """A value is not plain, or a text is not a literal."""


class LiteralNotPlain(LiteralError):
    """A value, or one inside it, is of another class."""


class LiteralTooLong(LiteralError):
    """The text of a value would exceed the limit."""


def to_literal(value: Any, max_chars: int = 1 << 24, subclasses: bool = False) -> str:
    """Returns the value as a Python expression of at most `max_chars` characters.

    With `subclasses`, a Counter is written as a dict, a named tuple as a tuple, and a Fraction as
    the number that it equals; that runs their own methods, so it is only for the process that made
    them.

    Raises:
        LiteralTooLong: the text would be longer.
        LiteralError: the value, or one inside it, is not plain, or is nested too deeply.
    """
    parts: list[str] = []
    _write(value, parts, max_chars, 0, subclasses)
    return "".join(parts)


def _write(value: Any, parts: list[str], room: int, depth: int, subclasses: bool) -> int:
    """Appends the text of `value` to `parts`; returns the room that is left, in characters."""
    if subclasses:
        value = _as_base(value)
    kind = type(value)
    if kind is int:
        bits = value.bit_length()
        if bits > 4 * room + 64:
            raise LiteralTooLong
        text = repr(value) if bits <= _DECIMAL_BITS else hex(value)
    elif kind is str or kind is bytes:
        if len(value) > room:
            raise LiteralTooLong
        text = repr(value)
    elif kind in _PLAIN:
        text = repr(value)
    elif kind in _BRACKETS or kind is dict:
        return _write_container(value, parts, room, depth, subclasses)
    else:
        raise LiteralNotPlain(f"{kind.__name__} is not a plain value")
    if len(text) > room:
        raise LiteralTooLong
    parts.append(text)
    return room - len(text)


def _as_base(value: Any) -> Any:
    """Converts an instance of a subclass of a plain type to that type itself."""
    kind = type(value)
    if kind in _CONSTANTS or kind in _BASES:
        return value
    base = next((base for base in _BASES if issubclass(kind, base)), None)
    if base is None:
        return _as_equal(value, kind)
    # `str` of a member of an enumeration is its name.
    return str.__str__(value) if base is str else base(value)


def _as_equal(value: Any, kind: type) -> Any:
    """Returns the plain value that a Fraction, a Decimal or a bytearray equals; others as they
    are."""
    if kind is bytearray:
        return bytes(value)
    if (kind.__module__, kind.__name__) not in _RATIONALS:
        return value
    try:
        ratio = value.as_integer_ratio()
        number = ratio[0] if ratio[1] == 1 else ratio[0] / ratio[1]
        return number if number.as_integer_ratio() == ratio else value
    except (ValueError, OverflowError):  # no number, or none of these
        return value


def _write_container(value: Any, parts: list[str], room: int, depth: int, subclasses: bool) -> int:
    if depth >= MAX_DEPTH:
        raise LiteralError(f"value is nested more than {MAX_DEPTH} deep")
    kind = type(value)
    if not value and kind in _EMPTY:
        parts.append(_EMPTY[kind])
        return _less(room, len(_EMPTY[kind]))
    if (kind is list or kind is tuple) and _are_short(value, room):
        parts.append(repr(value))
        return _less(room, len(parts[-1]))
    opening, closing = _BRACKETS.get(kind, ("{", "}"))
    room = _less(room, len(opening) + len(closing))
    parts.append(opening)
    first = True
    for item in value:
        if not first:
            parts.append(", ")
            room = _less(room, 2)
        first = False
        room = _write(item, parts, room, depth + 1, subclasses)
        if kind is dict:
            parts.append(": ")
            room = _write(value[item], parts, _less(room, 2), depth + 1, subclasses)
    if kind is tuple and len(value) == 1:
        parts.append(",")
    parts.append(closing)
    return room


def _are_short(items: Any, room: int) -> bool:
    """Whether a sequence holds short integers alone, and may fit: they are written at once."""
    return (
        3 * len(items) <= room
        and set(map(type, items)) == {int}
        and min(items) > -_SHORT
        and max(items) < _SHORT
    )


def _less(room: int, spent: int) -> int:
    if spent > room:
        raise LiteralTooLong
    return room - spent


def from_literal(text: str) -> Any:
    """Reads a text of `to_literal`, or any literal that a person would write.

    Raises:
        LiteralError: the text is not exactly one plain value.
    """
    try:
        return _value(ast.parse(text.strip(), "<literal>", "eval").body)
    except LiteralError:
        raise
    except (
        SyntaxError, ValueError, TypeError, OverflowError, MemoryError, RecursionError
    ) as error:  # fmt: skip
        raise LiteralError(f"not a literal: {error}") from None


def read_literal(text: str) -> Any:
    """Reads a text of `to_literal` and no other: for untrusted input.

    Takes time and memory linear in the text; the trees of `ast`, which `from_literal` needs, are a
    thousand times as large as the text of a list of small numbers.

    Raises:
        LiteralError: the text is anything else.
    """
    try:
        value, end = _read(text, 0, 0)
    except (ValueError, TypeError, SyntaxError) as error:
        raise LiteralError(f"not a literal: {error}") from None
    if end != len(text):
        raise LiteralError("something stands after the literal")
    return value


_ATOM = re.compile(
    r"""(?P<complex>\([-+.\dainfe]+j\)|[-+.\dainfe]+j)"""
    r"""|(?P<hex>-?0x[\da-f]+)|(?P<float>-?(?:\d+\.\d+|\d+(?=e)|inf|nan)(?:e[-+]\d+)?)"""
    r"""|(?P<int>-?\d+)|(?P<name>None|True|False|set\(\)|frozenset\(\))"""
    r"""|(?P<str>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")"""
    r"""|(?P<bytes>b'[^'\\\n]*(?:\\.[^'\\\n]*)*'|b"[^"\\\n]*(?:\\.[^"\\\n]*)*")""",
    re.ASCII,
)
_INTEGERS = re.compile(r"\[(-?\d{1,1299}+(?:, -?\d{1,1299}+)*+)\]", re.ASCII)
_ESCAPE = re.compile(r"\\(x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8}|.|$)", re.ASCII | re.DOTALL)
_PLAIN_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
_OPENING = re.compile(r"frozenset\(\{|[\[({]")
_CLOSING = {"[": "]", "(": ")", "{": "}", "frozenset({": "})"}
_NAMED = {"None": None, "True": True, "False": False}
_EMPTY_SETS = {"set()": set, "frozenset()": frozenset}


def _read(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Returns the value that starts at index `at` of the text, and the index of its end."""
    atom = _ATOM.match(text, at)
    if atom:
        return _atom(atom.lastgroup, atom[0]), atom.end()
    opening = _OPENING.match(text, at)
    if not opening or depth >= MAX_DEPTH:
        raise LiteralError("not a literal, or nested too deeply")
    if integers := _INTEGERS.match(text, at):  # several times as fast as one by one
        return list(map(int, integers[1].split(", "))), integers.end()
    closing, at = _CLOSING[opening[0]], opening.end()
    items: list[Any] = []
    values: list[Any] | None = None  # of a dict
    comma = False
    while not text.startswith(closing, at):
        if items and not comma:
            raise LiteralError("a comma is missing")
        item, at = _read(text, at, depth + 1)
        items.append(item)
        if closing == "}" and text.startswith(": ", at):
            values = [] if values is None else values
            value, at = _read(text, at + 2, depth + 1)
            values.append(value)
        comma = text.startswith(",", at)
        at += comma + text.startswith(", ", at)
    return _container(opening[0], items, values, comma), at + len(closing)


def _container(opening: str, items: list[Any], values: list[Any] | None, comma: bool) -> Any:
    if comma != (opening == "(" and len(items) == 1):
        raise LiteralError("a comma is missing, or one too many")
    if opening == "[":
        return items
    if opening == "(":
        return tuple(items)
    if opening == "{" and len(items) == len(values or ()):
        return dict(zip(hashable(items), values or (), strict=True))
    if not items or values is not None:
        raise LiteralError("neither a set nor a dict")
    return set(hashable(items)) if opening == "{" else frozenset(hashable(items))


def _atom(kind: str | None, text: str) -> Any:
    if kind == "int" and len(text) > _MOST_DECIMALS:
        raise LiteralError("so long an integer is written in hex")
    if kind == "int" or kind == "hex":
        return int(text, 16 if kind == "hex" else 10)
    if kind == "float":
        return float(text)
    if kind == "complex":
        return complex(text)
    if kind == "name":
        return _NAMED[text] if text in _NAMED else _EMPTY_SETS[text]()
    if kind == "str":
        return _ESCAPE.sub(_character, text[1:-1]) if "\\" in text else text[1:-1]
    if not text.isascii() or "\\u" in text.lower().replace("\\\\", ""):
        raise LiteralError("bytes are written in ASCII")
    return _ESCAPE.sub(_character, text[2:-1]).encode("latin-1")


def _character(escape: re.Match[str]) -> str:
    """Returns the character of an escape that `repr` writes; refuses all others."""
    kind = escape[1]
    if kind in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[kind]
    if kind and kind[0] in "xuU" and len(kind) > 1:
        return chr(int(kind[1:], 16))
    raise LiteralError("an escape that is never written")


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in _CONSTANTS:
        return node.value
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple([_value(item) for item in node.elts])
    if isinstance(node, ast.Set):
        return set(hashable([_value(item) for item in node.elts]))
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = hashable([_value(key) for key in node.keys if key])
        return dict(zip(keys, map(_value, node.values), strict=True))
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.UnaryOp):
        return _signed(node)
    if isinstance(node, ast.BinOp):
        return _complex(node)
    if isinstance(node, ast.Call):
        return _empty_or_frozen(node)
    raise LiteralError(f"{type(node).__name__} is not part of a plain value")


def hashable(items: list[Any]) -> list[Any]:
    """Returns the items. Raises LiteralError if many have the same hash, since a set of those takes
    quadratic time to build."""
    if len(items) > _MOST_EQUAL and max(Counter(map(hash, items)).values()) > _MOST_EQUAL:
        raise LiteralError("too many items of a set, or keys of a dict, have equal hashes")
    return items


def _signed(node: ast.UnaryOp) -> Any:
    value = _value(node.operand)
    if type(value) in (int, float, complex) and isinstance(node.op, ast.UAdd | ast.USub):
        return -value if isinstance(node.op, ast.USub) else value
    raise LiteralError("only numbers have a sign")


def _complex(node: ast.BinOp) -> complex:
    left, right = _value(node.left), _value(node.right)
    if type(left) in (int, float) and type(right) is complex:
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
    raise LiteralError("an operator is only allowed inside a complex number")


def _empty_or_frozen(node: ast.Call) -> Any:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "set" and not node.args and not node.keywords:
        return set()
    if name == "frozenset" and len(node.args) <= 1 and not node.keywords:
        items = _value(node.args[0]) if node.args else ()
        if type(items) in (set, list, tuple):
            return frozenset(hashable(list(items)))
    raise LiteralError("only set() and frozenset(...) may be called in a literal")
