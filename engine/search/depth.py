"""Depth-guided exploration of MARS²-T+ (arXiv 2602.07848; docs/algorithm.md, section 8).

The GEN draw at a node of depth d that has c children is multiplied by gamma(d)^c with
gamma(d) = 0.98 rho^d: the wider a node already is, and the deeper it lies, the less it widens.
"""

from __future__ import annotations

SHALLOW_GAMMA = 0.98


def depth_gamma(depth: int, rho: float) -> float:
    """gamma(d) = 0.98 rho^d; the root has depth 0."""
    return SHALLOW_GAMMA * rho**depth


def widening_discount(gamma: float, children: int) -> float:
    """gamma^c: what is left of a GEN draw after `children` generations at the node."""
    return gamma**children


def depth_weight(depth: int, children: int, rho: float) -> float:
    """Factor on the GEN draw at a node; 1 where nothing has been generated yet."""
    return widening_discount(depth_gamma(depth, rho), children)
