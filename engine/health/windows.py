"""Windows of a history, and what is computed of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def last(items: Sequence[T], count: int) -> list[T]:
    """Returns the newest `count` items, oldest first; fewer if there are not so many."""
    return list(islice(items, max(0, len(items) - count), None))


def mean(values: Iterable[float]) -> float:
    """Returns the mean of the finite values; nan without one, with which no comparison holds."""
    finite = [value for value in values if math.isfinite(value)]
    return statistics.fmean(finite) if finite else math.nan


def median(values: Iterable[float]) -> float:
    """Returns the median of the finite values; nan without one."""
    finite = [value for value in values if math.isfinite(value)]
    return statistics.median(finite) if finite else math.nan
