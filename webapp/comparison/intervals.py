"""Confidence intervals of differences between two evaluations, with bounded work.

Figures may be from an external engine, so their number and length are untrusted.

Invariants: one comparison draws at most `MOST_DRAWS` numbers, 2 to 3 s of one core; results are
cached by content, so that reloading a page draws nothing. Up to that bound the interval is the
paired bootstrap, equal to `python -m engine compare`; beyond it, the normal approximation, which is
the bootstrap's limit.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from engine.problems.paired import Interval, paired_bootstrap, paired_normal

CONFIDENCE = 0.95
RESAMPLES = 10_000
MOST_PROBLEMS = 5_000
"""Problems of a bootstrap; for more the normal approximation is as good."""
MOST_DRAWS = 200_000_000
"""Draws of one comparison: 66 figures of 300 problems."""
MOST_FIGURES = 64
"""Figures of one pair: the first ones."""
_MAX_CACHED = 10_000

_cache: OrderedDict[bytes, Interval] = OrderedDict()
_lock = threading.Lock()


class Budget:
    """Draws that one comparison may still make."""

    def __init__(self, draws: int = MOST_DRAWS):
        self.left = draws

    def take(self, draws: int) -> bool:
        """Takes `draws` from the budget; returns False, and takes none, if fewer are left."""
        if draws > self.left:
            return False
        self.left -= draws
        return True


def interval(before_P: Any, after_P: Any, budget: Budget) -> Interval:
    """Returns the interval of the mean of `after_P` - `before_P`, float64, a value per problem."""
    key = hashlib.sha256(before_P.tobytes() + after_P.tobytes()).digest()
    with _lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
    count = len(before_P)
    if count > MOST_PROBLEMS or not budget.take(count * RESAMPLES):
        return paired_normal(before_P, after_P, CONFIDENCE)
    rng = np.random.default_rng(0)
    result = paired_bootstrap(before_P, after_P, rng, RESAMPLES, CONFIDENCE)
    with _lock:
        _cache[key] = result
        while len(_cache) > _MAX_CACHED:
            _cache.popitem(last=False)
    return result


class Aligned:
    """Problems that two evaluations share, matched by content; both are payloads of the event
    `eval.outcomes`, contents [P] and outcomes by figure [P]."""

    def __init__(self, a: dict[str, Any], b: dict[str, Any]):
        self._a, self._b = a, b
        index_in_b = {content: index for index, content in enumerate(b["contents"])}
        shared = [
            (index, index_in_b[content])
            for content, index in {one: index for index, one in enumerate(a["contents"])}.items()
            if content in index_in_b
        ]
        self._index_pairs = np.array(shared, dtype=np.int64).reshape(-1, 2)

    def figures(self) -> list[str]:
        """Returns the names that both have, with a value for each of their problems, in the order
        of the first; `MOST_FIGURES` at most."""
        return [name for name in self._a["outcomes"] if self._both_have(name)][:MOST_FIGURES]

    def values(self, figure: str) -> tuple[Any, Any]:
        """Returns two float64 arrays, one value per problem for which both have one."""
        before, after = (
            np.array(one["outcomes"][figure], dtype=np.float64)[self._index_pairs[:, side]]
            for side, one in enumerate((self._a, self._b))
        )
        has_both = ~(np.isnan(before) | np.isnan(after))  # None is NaN
        return before[has_both], after[has_both]

    def _both_have(self, figure: str) -> bool:
        return all(
            len(one["outcomes"].get(figure, ())) == len(one["contents"])
            for one in (self._a, self._b)
        )
