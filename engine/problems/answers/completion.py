"""What a block of an answer lacks, from the answer's other blocks."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from engine.problems.answers.code import Code, last_line
from engine.problems.answers.own_modules import without_own_imports
from engine.problems.answers.parser import Parser

_ROUNDS = 8
"""Rounds of looking for names that code of earlier rounds needs."""


class Parts:
    """The pieces of code of one answer, in its order."""

    def __init__(self, codes: Sequence[Code], parser: Parser):
        self.codes, self._parser = without_own_imports(codes, parser.code), parser

    def completed(self, index: int) -> Code:
        """Returns a piece of code with what it lacks from the others: imports, functions, classes
        and values of earlier ones, the latest first; else imports, functions and classes of later
        ones."""
        main = self.codes[index]
        if len(self.codes) == 1 or not main.missing:
            return main
        taken: dict[int, set[ast.stmt]] = {}
        missing, had = main.missing, set(main.bound)
        for _ in range(_ROUNDS):
            fresh = self._defining(missing, index)
            if not self._parser.takes(sum(map(len, fresh.values()))):
                return main
            for other, nodes in fresh.items():
                taken.setdefault(other, set()).update(nodes)
            had |= missing
            text = "".join(self.codes[other].source_of(nodes) for other, nodes in fresh.items())
            lacking = self._parser.code(text)
            missing = lacking.missing - had if lacking else frozenset()
            if not missing:
                break
        if not taken:
            return main
        pieces = {other: self.codes[other].source_of(taken[other]) for other in sorted(taken)}
        before = "".join(text for other, text in pieces.items() if other < index)
        after = "".join(text for other, text in pieces.items() if other > index)
        head, body = _future_imports(main)
        body = body if body.endswith("\n") else f"{body}\n"
        return self._parser.code(f"{head}{before}{body}{after}") or main

    def _defining(self, names: frozenset[str], index: int) -> dict[int, set[ast.stmt]]:
        """Returns the statements that define the names, by the piece of code."""
        found: dict[int, set[ast.stmt]] = {}
        for name in sorted(names):
            other = self._binding(name, index)
            if other is None:
                name, other = "*", self._binding("*", index)  # `from string import *`
            if other is None:
                continue
            # A later block may bind other values in a use of the program; constants it does not.
            with_values = other < index or name.isupper()
            nodes = self.codes[other].statements_of(name, with_values)
            if nodes:
                found.setdefault(other, set()).update(nodes)
        return found

    def _binding(self, name: str, index: int) -> int | None:
        """Returns the last piece before `index` that binds the name, else the first one after."""
        places = self._places.get(name, [])
        at = bisect_left(places, index)
        if at:
            return places[at - 1]
        return next((place for place in places[:2] if place != index), None)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for index, code in enumerate(self.codes):
            for name in code.bound:
                places.setdefault(name, []).append(index)
        return places


def _future_imports(code: Code) -> tuple[str, str]:
    """Returns the code up to its last `from __future__` import, and the rest."""
    last = 0
    for node in code.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            last = last_line(node)
    lines = code.text.split("\n")
    return "".join(f"{line}\n" for line in lines[:last]), "\n".join(lines[last:])
