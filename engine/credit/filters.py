"""Dynamic filter (DAPO, arXiv 2503.14476; docs/algorithm.md, section 7).

A group whose mean score is at an end of the range has no differences to learn from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.config.credit import CreditConfig

MARGIN = 1e-6


def usable(scores: Sequence[float] | np.ndarray, config: CreditConfig) -> bool:
    """Returns whether a tree with these scores is used; one without any score never is."""
    return len(scores) > 0 and (not config.dynamic_filter or informative(scores))


def informative(scores: Sequence[float] | np.ndarray, low: float = 0.0, high: float = 1.0) -> bool:
    """Returns whether low < mean(scores) < high, by a margin of 1e-6; False without scores."""
    if len(scores) == 0:
        return False
    return low + MARGIN < float(np.mean(scores)) < high - MARGIN
