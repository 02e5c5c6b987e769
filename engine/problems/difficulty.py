"""Difficulty of problems, estimated from how often they were solved.

The raw share of failures is a bad estimate: a problem that was tried once is 0 or 1. It is shrunk
towards the average of its set, by an amount that the set determines: solve rates p_i are modelled
as draws from a Beta(a, b), fitted by the method of moments, and difficulty is one minus the
posterior mean,

    difficulty_i = 1 - (c_i + k m) / (n_i + k),      m = (sum c + 1/2) / (sum n + 1),

for c_i passes in n_i attempts. k = a + b is the number of attempts that the average is worth:
k = m (1 - m) / s2 - 1, with s2 the variance of the rates between problems, that is the weighted
variance of c_i/n_i minus the variance by chance (Kleinman 1973, doi:10.1080/01621459.1973.
10481332). If the rates vary no more than by chance, k is MAX_STRENGTH, and all problems are nearly
equally hard; if they vary as much as possible, k is MIN_STRENGTH.

Invariant: of two problems tried equally often, the one passed less often is harder; a problem that
was never tried has the difficulty of the average one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MIN_STRENGTH, MAX_STRENGTH = 0.5, 1000.0


def difficulties(passed_N: Sequence[int], tried_N: Sequence[int]) -> list[float]:
    """Returns the difficulty of each of N problems, between 0 (always solved) and 1 (never).

    Raises:
        ValueError: a count is negative, or a problem was passed more often than tried.
    """
    passed, tried = np.asarray(passed_N, float), np.asarray(tried_N, float)
    if passed.shape != tried.shape:
        raise ValueError(f"{len(passed)} counts of passes for {len(tried)} counts of attempts")
    wrong = np.flatnonzero((passed < 0) | (passed > tried))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"problem {i}: {passed[i]:g} passes in {tried[i]:g} attempts")
    mean = (passed.sum() + 0.5) / (tried.sum() + 1)
    strength = _strength(passed, tried, mean)
    return (1 - (passed + strength * mean) / (tried + strength)).tolist()


def _strength(passed: np.ndarray, tried: np.ndarray, mean: float) -> float:
    attempted = tried > 0
    if attempted.sum() < 2:
        return MAX_STRENGTH
    rates, counts = passed[attempted] / tried[attempted], tried[attempted]
    total, size = counts.sum(), attempted.sum()
    spread = mean * (1 - mean)
    # E[sum n_i (p_i - mean)^2] = spread (size - 1) + s2 (total - sum n_i^2 / total - (size - 1))
    excess = (counts * (rates - rates @ counts / total) ** 2).sum() - spread * (size - 1)
    weight = total - (counts**2).sum() / total - (size - 1)
    if excess <= 0 or weight <= 0:
        return MAX_STRENGTH
    return float(np.clip(spread / (excess / weight) - 1, MIN_STRENGTH, MAX_STRENGTH))
