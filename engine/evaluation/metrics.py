"""Metrics of evaluations (docs/algorithm.md, section 9), and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

from engine.inference.selection import Candidate, rank_answers


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Unbiased pass@k = 1 - C(n - c, k) / C(n, k) (Chen et al., arXiv 2107.03374).

    Raises:
        ValueError: unless 1 <= k <= n and 0 <= correct <= n.
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise ValueError(f"pass@{k} of {correct} right in {n}: needs 1 <= k <= n, 0 <= c <= n")
    return 1.0 - comb(n - correct, k) / comb(n, k)


@dataclass(frozen=True)
class TreeOutcome:
    """Result of one searched tree under the private tests."""

    pass1_tree: float
    """Whether one of the `top_k` selected answers passes; Pass@1(tree) for one."""
    pass_n: float
    """Whether any node passes."""
    mean_private_over_public_perfect: float
    """Mean over the nodes that pass all public tests; 0 if none does."""


def tree_outcome(
    public_N: Sequence[float | None], private_N: Sequence[float], top_k: int = 1
) -> TreeOutcome:
    """Returns the outcome of a tree whose nodes are given in the order of creation.

    `public_N` is None where verification failed; such a node is never selected. A tree without
    a verified node scores 0.
    """
    candidates = [Candidate(node, share) for node, share in enumerate(public_N)]
    ranked = rank_answers(candidates)
    perfect = [private_N[c.node] for c in ranked if c.public == 1.0]
    return TreeOutcome(
        pass1_tree=max((float(private_N[c.node]) for c in ranked[:top_k]), default=0.0),
        pass_n=max((float(private_N[c.node]) for c in ranked), default=0.0),
        mean_private_over_public_perfect=float(np.mean(perfect)) if perfect else 0.0,
    )


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean of one value per problem; 0 for fewer than two problems."""
    if len(values) < 2:
        return 0.0
    return float(np.std(values, ddof=1)) / sqrt(len(values))
