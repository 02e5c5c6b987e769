"""Shim of numpy for tests of EvalPlus: the judge has only the standard library.

They use numpy only to compare floats (`numpy.testing.assert_allclose`, `numpy.allclose`,
`numpy.isclose` of numbers, defaults rtol 1e-7 and 1e-5), for which a few lines of Python
suffice with plain values.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

CLOSE = """
def _close(actual, expected, rtol, atol):
    if isinstance(expected, (list, tuple)):
        same_kind = isinstance(actual, (list, tuple)) and len(actual) == len(expected)
        return same_kind and all(_close(a, e, rtol, atol) for a, e in zip(actual, expected))
    if actual == expected or (actual != actual and expected != expected):
        return True
    numbers = (bool, int, float, complex)
    if not isinstance(actual, numbers) or not isinstance(expected, numbers):
        return False
    return abs(actual - expected) <= atol + rtol * abs(expected) < float("inf")
"""
_NUMPY = (
    CLOSE
    + """
class np:
    ndarray = ()
    float64 = float32 = float
    inf = float("inf")
    nan = float("nan")
    def allclose(actual, expected, rtol=1e-5, atol=1e-8):
        return _close(actual, expected, rtol, atol)
    isclose = allclose
    class testing:
        def assert_allclose(actual, expected, rtol=1e-7, atol=0):
            assert _close(actual, expected, rtol, atol), f"{actual!r} is not close to {expected!r}"
"""
)


def without_numpy(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Returns the statements with `import numpy as np` replaced by the shim."""
    result: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.Import) and ast.unparse(node) == "import numpy as np":
            result += ast.parse(_NUMPY).body
        else:
            result.append(node)
    return result
