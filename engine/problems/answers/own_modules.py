"""Imports of an answer's own files, which are its other blocks: `from utils import plus`."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from engine.problems.answers.code import Code, first_line, last_line


def without_own_imports(codes: Sequence[Code], parse: Callable[[str], Code | None]) -> list[Code]:
    """Returns the pieces of code of an answer without imports of functions, classes and constants
    that other pieces define.

    Modules of the standard library are never an answer's own.
    """
    importing = [_foreign_imports(code) for code in codes]
    if not any(importing):
        return list(codes)
    defined = [_defined(code) for code in codes]
    counts = Counter(name for names in defined for name in names)
    changed: list[Code] = []
    for code, imports, mine in zip(codes, importing, defined, strict=True):
        own = [node for node in imports if _is_own(node, counts, mine)]
        changed.append((parse(_without(code, own)) if own else None) or code)
    return changed


def _foreign_imports(code: Code) -> list[ast.ImportFrom]:
    """Returns the imports at the top level from modules that are not the standard library's."""
    return [
        node
        for node in code.tree.body
        if isinstance(node, ast.ImportFrom)
        and (node.level or _root(node.module or "") not in sys.stdlib_module_names)
    ]


def _root(module: str) -> str:
    return module.partition(".")[0]


def _defined(code: Code) -> set[str]:
    return {name for name in code.bound if code.statements_of(name, name.isupper())} - {
        alias.asname or alias.name for node in _foreign_imports(code) for alias in node.names
    }


def _is_own(node: ast.ImportFrom, counts: Counter[str], mine: set[str]) -> bool:
    """Returns whether other pieces of code define what is imported; `counts` has how many pieces
    define each name, `mine` what the importing one defines itself."""
    if any(alias.asname not in (None, alias.name) for alias in node.names):
        return False
    if node.names[0].name == "*":
        return len(counts) > len(mine)
    return all(counts[alias.name] > (alias.name in mine) for alias in node.names)


def _without(code: Code, nodes: Sequence[ast.ImportFrom]) -> str:
    rows = {row for node in nodes for row in range(first_line(node), last_line(node) + 1)}
    lines = code.text.split("\n")
    return "\n".join("" if row in rows else line for row, line in enumerate(lines, 1))
