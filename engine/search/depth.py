"""Depth-guided exploration of MARS²-T+ (arXiv 2602.07848; docs/algorithm.md, section 8).

The GEN draw at a node of depth d that has c children is multiplied by gamma(d)^c with
gamma(d) = 0.98 rho^d: the wider a node already is, and the deeper it is, the less it widens.
"""

from __future__ import annotations

SHALLOW_GAMMA = 0.98


def depth_gamma(depth: int, rho: float) -> float:
    """Returns gamma(d) = 0.98 rho^d; the root has depth 0."""
    return SHALLOW_GAMMA * rho**depth


def widening_discount(gamma: float, children: int) -> float:
    """Returns gamma^c, the factor on a GEN draw after `children` generations at the node."""
    return gamma**children


def depth_weight(depth: int, children: int, rho: float) -> float:
    """Returns the factor on the GEN draw at a node; 1 for a node without children."""
    return widening_discount(depth_gamma(depth, rho), children)
