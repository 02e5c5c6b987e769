"""Counter-based random numbers of a row, which depend only on its seed and the token's index.

So a row's tokens do not depend on what else is in the batch, when it joined, or where a run was
interrupted: there is no state to save. Number n of a row is output n of SplitMix64 (Steele,
Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) started from its seed,
of which every output is a function of seed and n.
"""

from __future__ import annotations

import hashlib

import numpy as np

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def row_seed(*name: str | int) -> int:
    """Returns the seed of the row of that name, below 2**62; different names give independent
    streams."""
    digest = hashlib.sha256(repr(name).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def uniforms(seeds_N: np.ndarray, first_N: np.ndarray, count: int) -> np.ndarray:
    """Returns uniforms_NL in [0, 1): numbers first, first + 1, ... of every row, in float64."""
    counters_NL = (first_N[:, None] + np.arange(1, count + 1)).astype(np.uint64)
    mixed_NL = seeds_N.astype(np.uint64)[:, None] + GAMMA * counters_NL
    for shift, factor in MIX:
        mixed_NL = (mixed_NL ^ (mixed_NL >> np.uint64(shift))) * np.uint64(factor)
    mixed_NL ^= mixed_NL >> np.uint64(31)
    return (mixed_NL >> np.uint64(11)).astype(np.float64) * 2.0**-53
