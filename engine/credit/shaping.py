"""Tree-consistent reward shaping (arXiv 2604.14564; docs/algorithm.md, section 5).

For a node v with parent p(v), from raw rewards r:
    b(v)  = (1 - lambda) r_p(v) + lambda mean(r of v's siblings)
    r̂_v   = r_v + gamma (r_v - b(v))
A child of the root has only its siblings as baseline, an only child elsewhere only its parent,
and an only child of the root is unchanged.
"""

from __future__ import annotations

import numpy as np

ROOT = -1


def tree_shaping(
    rewards_N: np.ndarray, parents_N: np.ndarray, gamma: float, lambda_: float
) -> np.ndarray:
    """Returns the shaped rewards of one tree, in the order given; O(N).

    `parents_N` holds the index of each node's parent in these arrays, -1 for the root,
    which is not among them. Parents may precede or follow their children.

    Raises:
        ValueError: lengths differ, or a parent is not among the nodes.
    """
    rewards_N = np.asarray(rewards_N, dtype=np.float64)
    parents_N = np.asarray(parents_N, dtype=np.int64)
    count = len(rewards_N)
    if rewards_N.shape != (count,) or parents_N.shape != (count,):
        raise ValueError(f"{rewards_N.shape} rewards but {parents_N.shape} parents: give one each")
    if count == 0:
        return rewards_N
    if parents_N.min() < ROOT or parents_N.max() >= count:
        raise ValueError(f"parents = {parents_N.tolist()}: each is -1 or a position below {count}")
    groups_N = parents_N + 1  # bin 0: children of the root
    sizes_N = np.bincount(groups_N, minlength=count + 1)[groups_N]
    sums_N = np.bincount(groups_N, weights=rewards_N, minlength=count + 1)[groups_N]
    siblings_N = (sums_N - rewards_N) / np.maximum(sizes_N - 1, 1)

    has_siblings_N = sizes_N > 1
    has_parent_N = parents_N != ROOT
    parent_rewards_N = rewards_N[parents_N]  # meaningless below the root, and unused there
    baseline_N = np.select(
        [has_parent_N & has_siblings_N, has_parent_N, has_siblings_N],
        [(1 - lambda_) * parent_rewards_N + lambda_ * siblings_N, parent_rewards_N, siblings_N],
        default=rewards_N,
    )
    return rewards_N + gamma * (rewards_N - baseline_N)
