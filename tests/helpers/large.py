"""Parameters of which some run in every `make test`, and the others in `make test-all` alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def large_but(kept: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Returns the values for `pytest.mark.parametrize`; all but `kept` are marked large.

    Raises:
        ValueError: one of `kept` is not among the values.
    """
    values = list(values)
    if missing := [value for value in kept if value not in values]:
        raise ValueError(f"{missing} of the values that are kept are not among the values")
    large = pytest.mark.large
    return [
        value
        if value in kept
        else pytest.param(*value if isinstance(value, tuple) else (value,), marks=large)
        for value in values
    ]
