"""The parser of one answer's pieces, whose work is linear in the answer's length.

Invariant: however hostile an answer is, the characters that are parsed stay below `budget`; a piece
beyond it is taken for no code.
"""

from __future__ import annotations

import ast

from engine.problems.answers.code import SOURCE, Code

FLOOR, FACTOR = 400_000, 4
"""Characters that are parsed of an answer at most: so many, and so many times its length."""
_CHARS_OF_STATEMENT = 20
"""What a statement of another block counts before its text is put together."""


def budget(length: int) -> int:
    """Returns the characters that are parsed at most of an answer of this length."""
    return FLOOR + FACTOR * length


class Parser:
    """Parses pieces of an answer of `length` characters; `spent` counts the characters."""

    def __init__(self, length: int):
        self.budget, self.spent = budget(length), 0
        self._codes: dict[str, Code | None] = {}

    def code(self, text: str) -> Code | None:
        """Returns the code of a text; None if it does not parse, is empty, or is beyond the
        budget."""
        if text not in self._codes:
            self._codes[text] = Code.of(text) if self._pays(len(text)) else None
        return self._codes[text]

    def error_line(self, text: str) -> int | None:
        """Returns the line at which a text does not parse; None if it parses."""
        self._pays(len(text))
        try:
            ast.parse(text, filename=SOURCE)
        except SyntaxError as error:
            return error.lineno or 1
        except (ValueError, MemoryError, RecursionError):
            return 1
        return None

    def affords(self, text: str) -> bool:
        """Returns whether the text is within what is left of the budget."""
        return self.spent + len(text) <= self.budget

    def takes(self, statements: int) -> bool:
        """Returns whether so many statements of other blocks are still within the budget."""
        return self._pays(statements * _CHARS_OF_STATEMENT)

    def _pays(self, chars: int) -> bool:
        if self.spent + chars > self.budget:
            return False
        self.spent += chars
        return True
