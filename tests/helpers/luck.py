"""Random moments and values that a failure can be repeated with."""

from __future__ import annotations

import os
import random

VARIABLE = "TEST_SEED"


def luck() -> random.Random:
    """Returns a generator with a seed of its own at each call, which pytest prints if the test
    fails; with the variable TEST_SEED, with that one."""
    seed = int(os.environ.get(VARIABLE) or random.SystemRandom().randrange(10**6))
    print(f"{VARIABLE}={seed}")
    return random.Random(seed)
