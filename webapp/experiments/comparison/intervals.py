"""Confidence intervals of differences between two evaluations, with bounded work.

Figures may come from an engine that runs elsewhere, so their number and length are a stranger's.

Invariants: one comparison draws at most `MOST_DRAWS` numbers, 2 to 3 s of one core; what has been
worked out is kept by its content, so that reloading a page draws nothing. Up to that bound the
interval is the paired bootstrap, equal to `python -m engine compare`; beyond it, the normal
approximation that the bootstrap tends to.
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
"""That a bootstrap draws from; of more the normal approximation is as good."""
MOST_DRAWS = 200_000_000
"""Of one comparison: 66 figures of 300 problems."""
MOST_FIGURES = 64
"""Of one pair: the first ones."""
_MOST_KEPT = 10_000

_kept: OrderedDict[bytes, Interval] = OrderedDict()
_lock = threading.Lock()


class Budget:
    """Draws that one comparison may still make."""

    def __init__(self, draws: int = MOST_DRAWS):
        self.left = draws

    def take(self, draws: int) -> bool:
        """Whether there are so many left; then they are taken."""
        if draws > self.left:
            return False
        self.left -= draws
        return True


def interval(before_P: Any, after_P: Any, budget: Budget) -> Interval:
    """The interval of the mean of `after_P` - `before_P`, float64, one value a problem."""
    key = hashlib.sha256(before_P.tobytes() + after_P.tobytes()).digest()
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    count = len(before_P)
    if count > MOST_PROBLEMS or not budget.take(count * RESAMPLES):
        return paired_normal(before_P, after_P, CONFIDENCE)
    rng = np.random.default_rng(0)
    found = paired_bootstrap(before_P, after_P, rng, RESAMPLES, CONFIDENCE)
    with _lock:
        _kept[key] = found
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return found


class Aligned:
    """The problems that two evaluations share, matched by content; both are told as the event
    `eval.outcomes` is, contents [P] and outcomes by figure [P]."""

    def __init__(self, a: dict[str, Any], b: dict[str, Any]):
        self._a, self._b = a, b
        places = {content: place for place, content in enumerate(b["contents"])}
        shared = [
            (place, places[content])
            for content, place in {one: place for place, one in enumerate(a["contents"])}.items()
            if content in places
        ]
        self._places = np.array(shared, dtype=np.int64).reshape(-1, 2)

    def figures(self) -> list[str]:
        """Names that both have, a value for each of their problems, in the order of the first;
        `MOST_FIGURES` at most."""
        return [name for name in self._a["outcomes"] if self._both_have(name)][:MOST_FIGURES]

    def values(self, figure: str) -> tuple[Any, Any]:
        """Two arrays of float64, one value for each problem for which both have one."""
        before, after = (
            np.array(one["outcomes"][figure], dtype=np.float64)[self._places[:, side]]
            for side, one in enumerate((self._a, self._b))
        )
        known = ~(np.isnan(before) | np.isnan(after))  # None is NaN
        return before[known], after[known]

    def _both_have(self, figure: str) -> bool:
        return all(
            len(one["outcomes"].get(figure, ())) == len(one["contents"])
            for one in (self._a, self._b)
        )
