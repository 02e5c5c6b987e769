"""Diversity of a team's programs: clusters of programs that are equal up to their names.

Two programs are in one cluster if their syntax trees are equal without comments, layout and
docstrings, and with the names that each binds numbered in order of appearance. Lee et al. 2025,
arXiv 2503.00691, cluster by algorithm with a judge model; this is the exact, cheaper variant. No
program is run here.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb, exp, log

import numpy as np

from engine.credit.syntax import canonical_tree


def cluster_sizes(programs: Iterable[str]) -> list[int]:
    """Returns the sizes of the clusters; answers without a program belong to none."""
    return list(Counter(canonical(p) for p in programs if p.strip()).values())


def distinct_at_k(cluster_sizes: Sequence[int], k: int) -> float:
    """DA@K = M - sum_m C(N - s_m, K) / C(N, K): expected number of clusters in K of N answers.

    Source: Lee et al. 2025, arXiv 2503.00691. With K of N or more, all M clusters.
    """
    total = sum(cluster_sizes)
    if k >= total:
        return float(len(cluster_sizes))
    return len(cluster_sizes) - sum(comb(total - s, k) for s in cluster_sizes) / comb(total, k)


def effective_clusters(cluster_sizes: Sequence[int]) -> float:
    """EA = exp(entropy of the clusters' shares); 1 if all answers are in one cluster."""
    return exp(answer_entropy(cluster_sizes))


def answer_entropy(cluster_sizes: Sequence[int]) -> float:
    """Entropy of the clusters' shares, in nats; 0 if all answers are in one cluster.

    Source: Wu et al. 2025, arXiv 2507.14843: it may fall while that of the tokens rises.
    """
    total = sum(cluster_sizes)
    shares = [size / total for size in cluster_sizes if size]
    return -sum(share * log(share) for share in shares) + 0.0  # never -0.0


def area_under_distinct(cluster_sizes: Sequence[int], k_max: int) -> float:
    """NAUADC: area under DA@K for K = 1..k_max (trapezoidal rule), divided by k_max - 1."""
    values = [distinct_at_k(cluster_sizes, k) for k in range(1, k_max + 1)]
    if k_max == 1:
        return values[0]
    return float(np.trapezoid(values)) / (k_max - 1)


def canonical(program: str) -> str:
    """Returns one text for all programs that differ only in names, comments and layout.

    A program that does not parse, or is nested too deeply, is returned unchanged.
    """
    tree = canonical_tree(program)
    try:
        return program if tree is None else ast.dump(tree)
    except (ValueError, RecursionError, MemoryError):  # such as a number of too many digits
        return program
