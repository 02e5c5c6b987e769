"""Paired comparison of two results on the same problems: mean difference and confidence interval.

Invariant: values are paired by the problem's content, never by order or name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

_CHUNK = 1 << 18
"""Values resampled at a time: some megabytes, whatever the number of problems."""


@dataclass(frozen=True)
class Interval:
    """Mean of b - a over the same problems, with the ends of its confidence interval."""

    difference: float
    low: float
    high: float


def paired_bootstrap(
    a: Sequence[float],
    b: Sequence[float],
    rng: np.random.Generator,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> Interval:
    """Returns the percentile interval of the mean difference under resampling of problems (Efron
    1979).

    Raises:
        ValueError: `a` and `b` are empty or differ in length.
    """
    if len(a) != len(b) or len(a) == 0:
        raise ValueError(f"{len(a)} and {len(b)} values: give one per problem, the same problems")
    differences = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    count = len(differences)
    means = np.empty(resamples)
    rows = max(1, _CHUNK // count)  # 10,000 x problems would not fit for many
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start), count
        means[start : start + size[0]] = differences[rng.integers(0, count, size)].mean(axis=1)
    tail = (1.0 - confidence) / 2
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Interval(float(differences.mean()), float(low), float(high))


def paired_normal(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval:
    """Returns the limit of the bootstrap's interval for many problems (central limit theorem), in
    time linear in their number: mean difference +- z standard errors.

    Raises:
        ValueError: as `paired_bootstrap`.
    """
    if len(a) != len(b) or len(a) == 0:
        raise ValueError(f"{len(a)} and {len(b)} values: give one per problem, the same problems")
    differences = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    mean = float(differences.mean())
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    half = z * float(differences.std()) / len(differences) ** 0.5  # the bootstrap's own variance
    return Interval(mean, mean - half, mean + half)


def paired_student(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval:
    """Returns the interval of the mean of few differences, such as those of runs with equal seeds:
    mean difference +- t standard errors, with Student's t of n - 1 degrees of freedom. With zeros
    as `a` it is the interval of the mean of `b`.

    Raises:
        ValueError: `a` and `b` differ in length, or have fewer than two values.
    """
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"{len(a)} and {len(b)} values: give equally many, two or more")
    from scipy.special import stdtrit  # its import is slow

    differences = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    count, mean = len(differences), float(differences.mean())
    t = float(stdtrit(count - 1, 0.5 + confidence / 2))
    half = t * float(differences.std(ddof=1)) / count**0.5
    return Interval(mean, mean - half, mean + half)


def paired_values(
    a: Mapping[str, float | None], b: Mapping[str, float | None]
) -> tuple[list[float], list[float]]:
    """Returns the values of the problems, by content, that both have."""
    both = [key for key, value in a.items() if value is not None and b.get(key) is not None]
    return [a[key] for key in both], [b[key] for key in both]  # type: ignore[misc]
