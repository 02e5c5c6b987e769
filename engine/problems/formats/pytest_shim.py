"""Shim of pytest for tests of functions: the judge has only the standard library.

Invariant: a test that uses more of pytest than this is refused, never run in part.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.problems.formats.fields import RowError

PYTEST = """\
class pytest:
    class raises:
        def __init__(self, expected, *, match=None):
            self.expected, self.match = expected, match
        def __enter__(self):
            return self
        def __exit__(self, kind, value, trace):
            import re
            assert kind is not None, f"{self.expected} was not raised"
            self.value, self.type = value, kind
            if not issubclass(kind, self.expected):
                return False
            assert self.match is None or re.search(self.match, str(value)), str(value)
            return True
    class approx:
        def __init__(self, expected, rel=None, abs=None):
            self.expected, self.rel, self.abs = expected, rel, abs
        def __repr__(self):
            return f"approx({self.expected!r})"
        def __eq__(self, actual):
            return self.same(actual, self.expected)
        def same(self, actual, expected):
            if isinstance(expected, dict):
                return isinstance(actual, dict) and actual.keys() == expected.keys() and all(
                    self.same(actual[key], expected[key]) for key in expected)
            if isinstance(expected, (list, tuple)):
                return isinstance(actual, (list, tuple)) and len(actual) == len(expected) and all(
                    map(self.same, actual, expected))
            if actual == expected:
                return True
            numbers = (int, float, complex)
            if not isinstance(actual, numbers) or not isinstance(expected, numbers):
                return False
            size = max(expected, -expected) if not isinstance(expected, complex) else abs(expected)
            relative = 1e-6 if self.rel is None and self.abs is None else self.rel or 0
            return abs(actual - expected) <= max(
                relative * size, 1e-12 if self.abs is None else self.abs) < float("inf")
    class mark:
        def parametrize(names, cases, **_):
            single = isinstance(names, str) and "," not in names
            listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else names
            def decorate(function):
                def run(**given):
                    for case in cases:
                        values = [case] if single else case
                        function(**given, **dict(zip(listed, values, strict=True)))
                return run
            return decorate
"""
_SUPPORTED = frozenset({"pytest.raises", "pytest.approx", "pytest.mark.parametrize"})


def without_pytest(field: str, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Returns the statements without `import pytest` and `if __name__ == ...: pytest.main()`.

    Raises:
        RowError: a part of pytest is used that is not supported.
    """
    statements = [node for node in body if not _is_import(node) and not _is_main(node)]
    for node in statements:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and _is_foreign(inner):
                remedy = (
                    f"uses {ast.unparse(inner)}, of which only {', '.join(sorted(_SUPPORTED))} work"
                )
                raise RowError(field, ast.unparse(inner), remedy)
            if isinstance(inner, ast.ImportFrom) and inner.module == "pytest":
                raise RowError(field, ast.unparse(inner), "write `import pytest`")
    return statements


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and [name.name for name in node.names] == ["pytest"]


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _is_foreign(node: ast.Attribute) -> bool:
    text = ast.unparse(node)
    return text.startswith("pytest.") and text != "pytest.mark" and text not in _SUPPORTED
