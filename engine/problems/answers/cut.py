"""Code at the end of an answer that was cut at its limit of tokens: what of it is whole.

What was cut may still parse: half a function, `retu`, a sum of which a term is missing. A
definition is taken for whole if its end cannot be reached, as after `return`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from engine.problems.answers.code import Code, Grade, first_line

_NAME = re.compile(r"[^\W\d]\w*\Z")
_DEFINITION = re.compile(r"(?:async[ \t]+def|def|class)[ \t]|@")


def start_of_statement(lines: Sequence[str], number: int) -> int:
    """Returns the index of the line at which the top-level statement of line `number`, from 1,
    begins."""
    index = min(number, len(lines)) - 1
    while index > 0 and (not lines[index].strip() or lines[index][:1] in " \t"):
        index -= 1
    return index


def is_last(lines: Sequence[str]) -> bool:
    """Returns whether no definition follows the statement with which these lines begin."""
    return not any(_DEFINITION.match(line) for line in lines[1:] if not lines[0].startswith("@"))


def reaches_end(code: Code, answer: str) -> bool:
    """Returns whether the answer ends with the last line of the code."""
    return answer.rstrip().endswith(code.text.rstrip().rpartition("\n")[2].strip())


def whole_part(code: Code, entry_point: str | None, answer: str) -> tuple[Code, bool]:
    """Returns the code at the end of an answer that was cut, without a last statement that goes on
    after the cut and that a program of this entry point does not need; and whether it ends in one
    that it needs."""
    last = code.tree.body[-1]
    if not reaches_end(code, answer) or not _goes_on(code, last, answer):
        return code, False
    lines = code.text.split("\n")[: first_line(last) - 1]
    rest = Code.of("\n".join(lines) + "\n")
    if not entry_point or rest is None or rest.grade(entry_point) < Grade.WHOLE:
        return code, True
    return (code, True) if rest.missing & code.bound else (rest, False)


def _goes_on(code: Code, last: ast.stmt, answer: str) -> bool:
    name = _NAME.search(answer)
    if name and name[0] in code.missing:
        return True
    if isinstance(last, ast.ClassDef):
        last = last.body[-1]
    is_function = isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef)
    return is_function and _falls_through(last.body)


def _falls_through(body: Sequence[ast.stmt]) -> bool:
    """Returns whether the end of a function may be reached."""
    stack = [body]
    while stack:
        last = stack.pop()[-1]
        if isinstance(last, ast.If) and last.orelse:
            stack += [last.body, last.orelse]
        elif isinstance(last, ast.With | ast.AsyncWith):
            stack.append(last.body)
        elif isinstance(last, ast.Try):
            stack += [last.orelse or last.body, *(one.body for one in last.handlers)]
        elif not isinstance(last, ast.Return | ast.Raise) and not _is_endless(last):
            return True
    return False


def _is_endless(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and not any(isinstance(inner, ast.Break) for inner in ast.walk(node))
    )
