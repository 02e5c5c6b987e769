"""Operations whose phrase leaves a detail open: two to eight readings each.

The detail is the order of ties, an inclusive or exclusive end, a first position of zero or one,
the result for an empty input, a rounding, or a mark that the phrase does not name.

Invariants:
- A reading has the name, the types, the phrases and the constants of its operation: a statement
  never shows which reading is meant.
- No reading's code is that of a fully stated operation, nor of another reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.problems.generator.operations import LIST, NUMBER, TEXT, VOWELS, Operation

Apply = Callable[[Any, int], Any]


@dataclass(frozen=True)
class OpenOperation:
    """Operation with several readings: pairs of the code and the function that it computes."""

    name: str
    source: str
    target: str
    phrase: str
    pairs: tuple[tuple[str, Apply], ...]
    constants: tuple[int, ...] = ()

    @cached_property
    def readings(self) -> tuple[Operation, ...]:
        """The readings as operations of the same name, types, phrase and constants."""
        return tuple(
            Operation(
                self.name, self.source, self.target, code, apply, (self.phrase,), self.constants
            )
            for code, apply in self.pairs
        )


def _padded(side: str, value: int) -> tuple[str, Apply]:
    if side == "end":
        return f"x + [{value}] * ({{k}} - len(x))", lambda x, k: x + [value] * (k - len(x))
    return f"[{value}] * ({{k}} - len(x)) + x", lambda x, k: [value] * (k - len(x)) + x


def _joined(mark: str) -> tuple[str, Apply]:
    return f"'{mark}'.join(map(str, x))", lambda x, k: mark.join(map(str, x))


def _default(value: int) -> tuple[str, Apply]:
    return f"max(x, default={value})", lambda x, k: max(x, default=value)


def _marked(mark: str) -> tuple[str, Apply]:
    code = f"''.join('{mark}' if c in 'aeiou' else c for c in x)"
    return code, lambda x, k: "".join(mark if c in VOWELS else c for c in x)


def _enclosed(left: str, right: str) -> tuple[str, Apply]:
    return f"'{left}' + x + '{right}'", lambda x, k: left + x + right


def _spaced(mark: str) -> tuple[str, Apply]:
    return f"x.replace(' ', '{mark}')", lambda x, k: x.replace(" ", mark)


def _by_length(x: str, k: int) -> str:
    words = x.split()
    words.sort(key=len)
    return " ".join(words)


OPEN_OPERATIONS: tuple[OpenOperation, ...] = (
    OpenOperation("between", LIST, LIST, "keep the numbers from 0 to {k}", (
        ("[v for v in x if 0 <= v <= {k}]", lambda x, k: [v for v in x if 0 <= v <= k]),
        ("[v for v in x if 0 <= v < {k}]", lambda x, k: [v for v in x if 0 <= v < k]),
        ("[v for v in x if 0 < v <= {k}]", lambda x, k: [v for v in x if 0 < v <= k]),
        ("[v for v in x if 0 < v < {k}]", lambda x, k: [v for v in x if 0 < v < k]),
    ), (3, 4, 5)),
    OpenOperation("duplicates", LIST, LIST, "remove the duplicates", (
        ("[v for i, v in enumerate(x) if v not in x[:i]]", lambda x, k: [v for i, v in enumerate(x) if v not in x[:i]]),
        ("[v for i, v in enumerate(x) if v not in x[i + 1:]]", lambda x, k: [v for i, v in enumerate(x) if v not in x[i + 1:]]),
        ("[v for v in x if x.count(v) == 1]", lambda x, k: [v for v in x if x.count(v) == 1]),
        ("sorted(set(x))", lambda x, k: sorted(set(x))),
    )),
    OpenOperation("by_size", LIST, LIST, "sort by absolute value", (
        ("sorted(x, key=abs)", lambda x, k: sorted(x, key=abs)),
        ("sorted(sorted(x), key=abs)", lambda x, k: sorted(sorted(x), key=abs)),
        ("sorted(x, key=abs)[::-1]", lambda x, k: sorted(x, key=abs)[::-1]),
    )),
    OpenOperation("turn", LIST, LIST, "rotate it by {k}", (
        ("x[{k}:] + x[:{k}]", lambda x, k: x[k:] + x[:k]),
        ("x[-{k}:] + x[:-{k}]", lambda x, k: x[-k:] + x[:-k]),
    ), (2, 3)),
    OpenOperation("remove_at", LIST, LIST, "remove element number {k}", (
        ("x[:{k}] + x[{k} + 1:]", lambda x, k: x[:k] + x[k + 1:]),
        ("x[:{k} - 1] + x[{k}:]", lambda x, k: x[:k - 1] + x[k:]),
    ), (1, 2, 3)),
    OpenOperation("every_third", LIST, LIST, "keep every third element", (
        ("x[::3]", lambda x, k: x[::3]),
        ("x[1::3]", lambda x, k: x[1::3]),
        ("x[2::3]", lambda x, k: x[2::3]),
    )),
    OpenOperation("pad", LIST, LIST, "pad it to {k} elements", tuple(
        _padded(side, value) for side in ("end", "start") for value in (0, 1, -1, 9)
    ), (4, 5, 6)),
    OpenOperation("middle", LIST, NUMBER, "take the middle element", (
        ("x[len(x) // 2]", lambda x, k: x[len(x) // 2]),
        ("x[(len(x) - 1) // 2]", lambda x, k: x[(len(x) - 1) // 2]),
    )),
    OpenOperation("peak", LIST, NUMBER, "find the position of the largest number", (
        ("x.index(max(x))", lambda x, k: x.index(max(x))),
        ("x.index(max(x)) + 1", lambda x, k: x.index(max(x)) + 1),
        ("len(x) - 1 - x[::-1].index(max(x))", lambda x, k: len(x) - 1 - x[::-1].index(max(x))),
        ("len(x) - x[::-1].index(max(x))", lambda x, k: len(x) - x[::-1].index(max(x))),
    )),
    OpenOperation("largest_or", LIST, NUMBER, "take the largest number, or a default", tuple(
        _default(value) for value in (-1, 1, -9, 9)
    )),
    OpenOperation("join", LIST, TEXT, "join the numbers", tuple(
        _joined(mark) for mark in (",", " ", "", "+", "/", ":", ";", "_")
    )),
    OpenOperation("up_to", NUMBER, LIST, "count up to its last digit", (
        ("list(range(abs(x) % 10))", lambda x, k: list(range(abs(x) % 10))),
        ("list(range(abs(x) % 10 + 1))", lambda x, k: list(range(abs(x) % 10 + 1))),
        ("list(range(1, abs(x) % 10))", lambda x, k: list(range(1, abs(x) % 10))),
        ("list(range(1, abs(x) % 10 + 1))", lambda x, k: list(range(1, abs(x) % 10 + 1))),
    )),
    OpenOperation("divide", NUMBER, NUMBER, "divide it by {k} and round", (
        ("x // {k}", lambda x, k: x // k),
        ("-(-x // {k})", lambda x, k: -(-x // k)),
    ), (3, 4)),
    OpenOperation("base", NUMBER, TEXT, "write it in another base", (
        ("format(x, 'b')", lambda x, k: format(x, "b")),
        ("format(x, 'o')", lambda x, k: format(x, "o")),
        ("format(x, 'x')", lambda x, k: format(x, "x")),
        ("format(x, '#o')", lambda x, k: format(x, "#o")),
        ("format(x, '#x')", lambda x, k: format(x, "#x")),
        ("format(x, '08b')", lambda x, k: format(x, "08b")),
    )),
    OpenOperation("longest", TEXT, TEXT, "take the longest word", (
        ("max(x.split(), key=len)", lambda x, k: max(x.split(), key=len)),
        ("max(x.split()[::-1], key=len)", lambda x, k: max(x.split()[::-1], key=len)),
    )),
    OpenOperation("order", TEXT, TEXT, "put the words in order", (
        ("' '.join(sorted(x.split()))", lambda x, k: " ".join(sorted(x.split()))),
        ("' '.join(sorted(x.split(), key=len))", _by_length),
        ("' '.join(sorted(x.split(), key=str.lower))", lambda x, k: " ".join(sorted(x.split(), key=str.lower))),
    )),
    OpenOperation("capital", TEXT, TEXT, "capitalize it", (
        ("x.capitalize()", lambda x, k: x.capitalize()),
        ("x.title()", lambda x, k: x.title()),
        ("x[:1].upper() + x[1:]", lambda x, k: x[:1].upper() + x[1:]),
    )),
    OpenOperation("cut", TEXT, TEXT, "cut it at the first space", (
        ("x.partition(' ')[0]", lambda x, k: x.partition(" ")[0]),
        ("x.partition(' ')[2]", lambda x, k: x.partition(" ")[2]),
        ("''.join(x.partition(' ')[:2])", lambda x, k: "".join(x.partition(" ")[:2])),
        ("''.join(x.partition(' ')[1:])", lambda x, k: "".join(x.partition(" ")[1:])),
    )),
    OpenOperation("spaces", TEXT, TEXT, "replace the spaces by a mark", tuple(
        _spaced(mark) for mark in ("_", "-", ".", "/")
    )),
    OpenOperation("vowels", TEXT, TEXT, "replace the small vowels by a mark", tuple(
        _marked(mark) for mark in ("*", "_", "#", "?", "!", "+", "~", "%")
    )),
    OpenOperation("enclose", TEXT, TEXT, "enclose it in a pair of marks", tuple(
        _enclosed(*marks) for marks in ("()", "[]", "<>", "//", "||", "**")
    )),
    OpenOperation("find_e", TEXT, NUMBER, "find the position of the letter e", (
        ("x.find('e')", lambda x, k: x.find("e")),
        ("x.find('e') + 1", lambda x, k: x.find("e") + 1),
        ("x.rfind('e')", lambda x, k: x.rfind("e")),
        ("x.rfind('e') + 1", lambda x, k: x.rfind("e") + 1),
    )),
)  # fmt: skip

OPEN_BY_SOURCE: dict[str, tuple[OpenOperation, ...]] = {
    kind: tuple(op for op in OPEN_OPERATIONS if op.source == kind) for kind in (LIST, NUMBER, TEXT)
}
