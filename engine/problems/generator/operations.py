"""Operations of the built-in generator over lists, numbers and strings.

Invariant: for every operation and constant, `code` evaluated on x equals what `apply` returns. The
reference solution of every problem is run on its tests, so an error here cannot go unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

LIST, NUMBER, TEXT = "list", "number", "text"
VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Operation:
    """Operation from a value of type `source` to one of type `target`.

    `code` and `phrases` may contain {k}, a constant drawn from `constants`.
    """

    name: str
    source: str
    target: str
    code: str
    apply: Callable[[Any, int], Any]
    phrases: tuple[str, ...]
    constants: tuple[int, ...] = ()


def _digits(n: int) -> list[int]:
    return [int(c) for c in str(abs(n))]


def _operations(source: str, target: str, *rows: tuple[Any, ...]) -> list[Operation]:
    return [Operation(name, source, target, *rest) for name, *rest in rows]


SMALL = (2, 3, 4, 5)

OPERATIONS: tuple[Operation, ...] = (
    *_operations(
        LIST, LIST,
        ("reverse", "x[::-1]", lambda x, k: x[::-1], ("reverse the list", "put the list in reverse order")),
        ("ascend", "sorted(x)", lambda x, k: sorted(x), ("sort it in ascending order", "sort from small to large")),
        ("descend", "sorted(x, reverse=True)", lambda x, k: sorted(x, reverse=True), ("sort it in descending order", "sort from large to small")),
        ("evens", "[v for v in x if v % 2 == 0]", lambda x, k: [v for v in x if v % 2 == 0], ("keep only the even numbers", "remove the odd numbers")),
        ("odds", "[v for v in x if v % 2 == 1]", lambda x, k: [v for v in x if v % 2 == 1], ("keep only the odd numbers", "remove the even numbers")),
        ("positives", "[v for v in x if v > 0]", lambda x, k: [v for v in x if v > 0], ("keep only the positive numbers", "remove everything that is not above zero")),
        ("negatives", "[v for v in x if v < 0]", lambda x, k: [v for v in x if v < 0], ("keep only the negative numbers", "remove everything that is not below zero")),
        ("above", "[v for v in x if v > {k}]", lambda x, k: [v for v in x if v > k], ("keep the numbers greater than {k}",), SMALL),
        ("below", "[v for v in x if v < {k}]", lambda x, k: [v for v in x if v < k], ("keep the numbers less than {k}",), SMALL),
        ("unique", "list(dict.fromkeys(x))", lambda x, k: list(dict.fromkeys(x)), ("drop repeated values", "keep the first of each value")),
        ("add_each", "[v + {k} for v in x]", lambda x, k: [v + k for v in x], ("add {k} to each number",), SMALL),
        ("subtract_each", "[v - {k} for v in x]", lambda x, k: [v - k for v in x], ("subtract {k} from each number",), SMALL),
        ("multiply_each", "[v * {k} for v in x]", lambda x, k: [v * k for v in x], ("multiply each number by {k}",), SMALL),
        ("square_each", "[v * v for v in x]", lambda x, k: [v * v for v in x], ("square each number",)),
        ("absolute_each", "[abs(v) for v in x]", lambda x, k: [abs(v) for v in x], ("take the absolute value of each number",)),
        ("negate_each", "[-v for v in x]", lambda x, k: [-v for v in x], ("negate each number", "flip the sign of each number")),
        ("running_sum", "[sum(x[:i + 1]) for i in range(len(x))]", lambda x, k: list(accumulate(x)), ("replace each number by the running total",)),
        ("differences", "[b - a for a, b in zip(x, x[1:])]", lambda x, k: [b - a for a, b in zip(x, x[1:], strict=False)], ("take the differences of neighbours",)),
        ("every_second", "x[::2]", lambda x, k: x[::2], ("keep every second element, from the first on",)),
        ("drop_first", "x[1:]", lambda x, k: x[1:], ("drop the first element",)),
        ("drop_last", "x[:-1]", lambda x, k: x[:-1], ("drop the last element",)),
        ("take", "x[:{k}]", lambda x, k: x[:k], ("take the first {k} elements",), (2, 3, 4)),
        ("tail", "x[-{k}:]", lambda x, k: x[-k:], ("take the last {k} elements",), (2, 3, 4)),
        ("rotate", "x[1:] + x[:1]", lambda x, k: x[1:] + x[:1], ("move the first element to the end",)),
        ("mirror", "x + x[::-1]", lambda x, k: x + x[::-1], ("append the reversed list",)),
        ("times_position", "[i * v for i, v in enumerate(x)]", lambda x, k: [i * v for i, v in enumerate(x)], ("multiply each number by its position",)),
    ),
    *_operations(
        LIST, NUMBER,
        ("total", "sum(x)", lambda x, k: sum(x), ("take the sum", "add all numbers up")),
        ("largest", "max(x, default=0)", lambda x, k: max(x, default=0), ("take the largest number, or 0 if there is none",)),
        ("smallest", "min(x, default=0)", lambda x, k: min(x, default=0), ("take the smallest number, or 0 if there is none",)),
        ("size", "len(x)", lambda x, k: len(x), ("count the elements",)),
        ("count_distinct", "len(set(x))", lambda x, k: len(set(x)), ("count the distinct values",)),
        ("mean", "sum(x) // max(len(x), 1)", lambda x, k: sum(x) // max(len(x), 1), ("take the mean, rounded down",)),
        ("count_even", "sum(v % 2 == 0 for v in x)", lambda x, k: sum(v % 2 == 0 for v in x), ("count the even numbers",)),
        ("count_above", "sum(v > {k} for v in x)", lambda x, k: sum(v > k for v in x), ("count the numbers greater than {k}",), SMALL),
        ("square_sum", "sum(v * v for v in x)", lambda x, k: sum(v * v for v in x), ("take the sum of the squares",)),
    ),
    *_operations(
        LIST, TEXT,
        ("join_dashes", "'-'.join(map(str, x))", lambda x, k: "-".join(map(str, x)), ("join the numbers with dashes",)),
    ),
    *_operations(
        NUMBER, NUMBER,
        ("add", "x + {k}", lambda x, k: x + k, ("add {k}",), SMALL),
        ("subtract", "x - {k}", lambda x, k: x - k, ("subtract {k}",), SMALL),
        ("multiply", "x * {k}", lambda x, k: x * k, ("multiply by {k}",), SMALL),
        ("square", "x * x", lambda x, k: x * x, ("square it",)),
        ("negate", "-x", lambda x, k: -x, ("flip its sign",)),
        ("absolute", "abs(x)", lambda x, k: abs(x), ("take its absolute value",)),
        ("modulo", "x % {k}", lambda x, k: x % k, ("take the remainder after division by {k}",), (3, 4, 5, 7)),
        ("halve", "x // 2", lambda x, k: x // 2, ("halve it, rounding down",)),
        ("digit_sum", "sum(map(int, str(abs(x))))", lambda x, k: sum(_digits(x)), ("add up its digits",)),
    ),
    *_operations(
        NUMBER, LIST,
        ("digits", "[int(c) for c in str(abs(x))]", lambda x, k: _digits(x), ("list its digits",)),
        ("count_up", "list(range(x % {k}))", lambda x, k: list(range(x % k)), ("list the numbers from 0 up to its remainder after division by {k}",), (7, 8, 9)),
    ),
    *_operations(
        NUMBER, TEXT,
        ("written", "str(x)", lambda x, k: str(x), ("write it as a string",)),
        ("binary", "bin(x)", lambda x, k: bin(x), ("write it in binary with its prefix",)),
    ),
    *_operations(
        TEXT, TEXT,
        ("upper", "x.upper()", lambda x, k: x.upper(), ("turn it to upper case", "make all letters capital")),
        ("lower", "x.lower()", lambda x, k: x.lower(), ("turn it to lower case", "make all letters small")),
        ("swap_case", "x.swapcase()", lambda x, k: x.swapcase(), ("swap upper and lower case",)),
        ("backwards", "x[::-1]", lambda x, k: x[::-1], ("reverse the string", "read it backwards")),
        ("no_spaces", "x.replace(' ', '')", lambda x, k: x.replace(" ", ""), ("remove the spaces",)),
        ("no_vowels", "''.join(c for c in x if c.lower() not in 'aeiou')", lambda x, k: "".join(c for c in x if c.lower() not in VOWELS), ("remove the vowels",)),
        ("double_letters", "''.join(c * 2 for c in x)", lambda x, k: "".join(c * 2 for c in x), ("write every character twice",)),
        ("head", "x[:{k}]", lambda x, k: x[:k], ("take the first {k} characters",), (3, 4, 5)),
        ("end", "x[-{k}:]", lambda x, k: x[-k:], ("take the last {k} characters",), (3, 4, 5)),
        ("alphabetic", "''.join(sorted(x))", lambda x, k: "".join(sorted(x)), ("sort its characters",)),
        ("dots", "x.replace('a', '.')", lambda x, k: x.replace("a", "."), ("replace each letter a by a dot",)),
        ("words_backwards", "' '.join(x.split()[::-1])", lambda x, k: " ".join(x.split()[::-1]), ("reverse the order of the words",)),
    ),
    *_operations(
        TEXT, NUMBER,
        ("length", "len(x)", lambda x, k: len(x), ("take its length",)),
        ("count_vowels", "sum(c.lower() in 'aeiou' for c in x)", lambda x, k: sum(c.lower() in VOWELS for c in x), ("count the vowels",)),
        ("count_words", "len(x.split())", lambda x, k: len(x.split()), ("count the words",)),
        ("count_capitals", "sum(c.isupper() for c in x)", lambda x, k: sum(c.isupper() for c in x), ("count the capital letters",)),
        ("count_e", "x.count('e')", lambda x, k: x.count("e"), ("count the letter e",)),
    ),
    *_operations(
        TEXT, LIST,
        ("word_lengths", "[len(w) for w in x.split()]", lambda x, k: [len(w) for w in x.split()], ("list the lengths of the words",)),
        ("codes", "[ord(c) for c in x]", lambda x, k: [ord(c) for c in x], ("list the character codes",)),
    ),
)  # fmt: skip

BY_SOURCE: dict[str, tuple[Operation, ...]] = {
    kind: tuple(op for op in OPERATIONS if op.source == kind) for kind in (LIST, NUMBER, TEXT)
}
