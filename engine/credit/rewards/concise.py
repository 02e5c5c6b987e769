"""Brevity: 1 - length / limit, the unused share of an answer's tokens.

The length reward of ConciseR (arXiv 2505.21178), without its gate: wrong answers gain from brevity
too, so its weight must be small against the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.reward import PartOptions


class Options(PartOptions):
    """Brevity: the unused share of an answer's tokens."""


def part(nodes: Nodes, options: Any) -> np.ndarray:
    """Returns the shares, 0 to 1; a limit is that of the node's own agent."""
    return 1.0 - np.asarray(nodes.lengths_N, dtype=np.float64) / nodes.limits_N
