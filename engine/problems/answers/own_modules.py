"""Imports of an answer's own files, which are its other blocks: `from utils import plus`, and
`import utils` with `utils.plus`."""

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
        if not imports:
            changed.append(code)
            continue
        known, own = _Uses(code, counts), list[_Import]()
        uses: list[ast.Attribute] = []
        for node in imports:
            if _is_own(node, counts, mine):
                own.append(node)
            elif found := known.of_own(node):
                own.append(node)
                uses += found
        changed.append((parse(_without(code, own, uses)) if own else None) or code)
    return changed


_Import = ast.Import | ast.ImportFrom


def _foreign_imports(code: Code) -> list[_Import]:
    """Returns the imports at the top level of modules that are not the standard library's."""
    return [
        node
        for node in code.tree.body
        if (
            isinstance(node, ast.ImportFrom)
            and (node.level or _root(node.module or "") not in sys.stdlib_module_names)
        )
        or (
            isinstance(node, ast.Import)
            and all(_root(one.name) not in sys.stdlib_module_names for one in node.names)
        )
    ]


def _root(module: str) -> str:
    return module.partition(".")[0]


def _defined(code: Code) -> set[str]:
    return {name for name in code.bound if code.statements_of(name, name.isupper())} - {
        alias.asname or alias.name for node in _foreign_imports(code) for alias in node.names
    }


def _is_own(node: _Import, counts: Counter[str], mine: set[str]) -> bool:
    """Returns whether other pieces of code define what is imported; `counts` has how many pieces
    define each name, `mine` what the importing one defines itself."""
    renames = any(alias.asname not in (None, alias.name) for alias in node.names)
    if renames or isinstance(node, ast.Import):
        return False
    if node.names[0].name == "*":
        return len(counts) > len(mine)
    return all(counts[alias.name] > (alias.name in mine) for alias in node.names)


class _Uses:
    """Where a piece of code uses names of modules, found once however many it imports."""

    def __init__(self, code: Code, counts: Counter[str]):
        self._bound, self._counts = code.bound, counts
        self._names: Counter[str] = Counter()
        self._attributes: dict[str, list[ast.Attribute]] = {}
        for node in ast.walk(code.tree):
            if isinstance(node, ast.Name):
                self._names[node.id] += 1
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                self._attributes.setdefault(node.value.id, []).append(node)

    def of_own(self, node: _Import) -> list[ast.Attribute]:
        """Returns the uses of the module that a statement imports, if all that is used of it is
        defined by other pieces alone; else nothing."""
        alias = node.names[0]
        if len(node.names) > 1 or alias.name == "*" or (not alias.asname and "." in alias.name):
            return []
        name = alias.asname or alias.name
        found = self._attributes.pop(name, [])
        if len(found) != self._names[name]:
            return []
        are_own = all(self._counts[one.attr] and one.attr not in self._bound for one in found)
        return found if are_own else []


def _without(code: Code, nodes: Sequence[_Import], uses: Sequence[ast.Attribute]) -> str:
    """Returns code without imports, and with names for attributes of what they import."""
    rows = {row for node in nodes for row in range(first_line(node), last_line(node) + 1)}
    lines = code.text.split("\n")
    for use in sorted(uses, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        if use.end_lineno == use.lineno:
            line = lines[use.lineno - 1].encode()
            changed = line[: use.col_offset] + use.attr.encode() + line[use.end_col_offset :]
            lines[use.lineno - 1] = changed.decode()
    return "\n".join("" if row in rows else line for row, line in enumerate(lines, 1))
