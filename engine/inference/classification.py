"""Metrics of a reward model as a binary classifier of programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def area_under_roc(labels: Sequence[bool], scores: Sequence[float]) -> float:
    """Probability that a positive scores above a negative, ties half (Mann-Whitney U / (P N)).

    Raises:
        ValueError: there is no positive, or no negative.
    """
    positive = np.asarray(labels, dtype=bool)
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[inverse]  # mean rank of equal scores
    right, wrong = int(positive.sum()), int((~positive).sum())
    if not right or not wrong:
        raise ValueError(f"{right} positives, {wrong} negatives: an area needs both")
    return float((ranks[positive].sum() - right * (right + 1) / 2) / (right * wrong))


def binary_cross_entropy(labels: Sequence[bool], scores: Sequence[float]) -> float:
    """Mean of -ln p(label), in nats; scores are clipped to [1e-12, 1 - 1e-12]."""
    p = np.clip(np.asarray(scores, dtype=np.float64), 1e-12, 1 - 1e-12)
    positive = np.asarray(labels, dtype=bool)
    return float(-np.where(positive, np.log(p), np.log1p(-p)).mean())
