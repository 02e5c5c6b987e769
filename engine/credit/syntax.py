"""Syntax trees of programs, equal for programs that differ only in names, comments and layout.

Names that a program binds are numbered in order of appearance, and docstrings are left out. No
program is run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BOUND = "_"
"""What the number of a bound name stands behind."""


def canonical_tree(program: str) -> ast.Module | None:
    """Returns the syntax tree of a program, with its names numbered and without docstrings; None if
    it does not parse, or is nested too deeply."""
    try:
        tree = ast.parse(program)
        numbers = {name: f"{BOUND}{n}" for n, name in enumerate(_bound(tree))}
        for node in ast.walk(tree):
            _without_docstring(node)
            _rename(node, numbers)
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(tree: ast.AST) -> dict[str, None]:
    """Returns the names that the program binds, in order of appearance."""
    bound: dict[str, None] = {}
    for node in _depth_first(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.setdefault(node.id)
        elif isinstance(node, ast.arg):
            bound.setdefault(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.setdefault(node.name)
    return bound


def _depth_first(tree: ast.AST) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _rename(node: ast.AST, numbers: dict[str, str]) -> None:
    for attribute in ("id", "arg", "name"):
        name = getattr(node, attribute, None)
        if isinstance(name, str) and name in numbers:
            setattr(node, attribute, numbers[name])
    if isinstance(node, ast.Global | ast.Nonlocal):
        node.names = [numbers.get(name, name) for name in node.names]


def _without_docstring(node: ast.AST) -> None:
    if not isinstance(node, _SCOPES) or not node.body:
        return
    first = node.body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return
    if isinstance(first.value.value, str):
        node.body = node.body[1:]
