"""Soft overlong penalty (DAPO, arXiv 2503.14476; docs/algorithm.md, section 7).

With L output tokens, limit L_max and buffer B: e = min(L - (L_max - B), B); if e > 0 the reward
gets -(e / B) factor. B and factor are `credit.overlong_buffer_tokens` and `overlong_factor`.
"""

from __future__ import annotations

import numpy as np

from engine.config.credit import CreditConfig
from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.reward import PartInUse


def overlong_penalty(
    lengths_N: np.ndarray, limits_N: np.ndarray | int, buffer_tokens: int, factor: float
) -> np.ndarray:
    """Returns the term added to each reward: 0 up to L_max - B tokens, -factor from L_max on.

    `limits_N` is one limit in tokens, or one per node where agents differ. A buffer of 0 turns
    the penalty off.
    """
    lengths_N = np.asarray(lengths_N, dtype=np.float64)
    if buffer_tokens == 0:
        return np.zeros_like(lengths_N)
    excess_N = np.minimum(lengths_N - (np.asarray(limits_N) - buffer_tokens), buffer_tokens)
    return -np.maximum(excess_N, 0.0) / buffer_tokens * factor


def in_use(config: CreditConfig) -> PartInUse | None:
    """Returns how a run uses the penalty: with weight 1, unless its buffer is 0."""
    return PartInUse(1.0, False, config) if config.overlong_buffer_tokens else None


def part(nodes: Nodes, options: CreditConfig) -> np.ndarray:
    """Returns the penalty of each node, 0 or less."""
    buffer, factor = options.overlong_buffer_tokens, options.overlong_factor
    return overlong_penalty(nodes.lengths_N, nodes.limits_N, buffer, factor)
