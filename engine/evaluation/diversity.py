"""Diversity of a team's programs: clusters of programs that are equal up to their names.

Two programs are in one cluster if their syntax trees are equal without comments, layout and
docstrings, and with the names that each binds numbered in order of appearance. Sources of the
figures over clusters: `engine.evaluation.metrics` (Lee et al. 2025, arXiv 2503.00691, cluster by
algorithm with a judge model; this is the exact, cheaper variant). No program is run here.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def cluster_sizes(programs: Iterable[str]) -> list[int]:
    """Returns the sizes of the clusters; answers without a program belong to none."""
    return list(Counter(canonical(p) for p in programs if p.strip()).values())


def canonical(program: str) -> str:
    """Returns one text for all programs that differ only in names, comments and layout.

    A program that does not parse, or is nested too deeply, is returned unchanged.
    """
    try:
        tree = ast.parse(program)
        numbers = {name: f"_{n}" for n, name in enumerate(_bound(tree))}
        for node in ast.walk(tree):
            _without_docstring(node)
            _rename(node, numbers)
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return program


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


def _depth_first(tree: ast.AST) -> Iterable[ast.AST]:
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
    if isinstance(node, _SCOPES) and node.body:
        first = node.body[0]
        text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if text and isinstance(first.value.value, str):
            node.body = node.body[1:]
