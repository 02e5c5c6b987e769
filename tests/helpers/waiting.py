"""Waiting for an effect of another process or thread: one helper, with a deadline and a name.

A deadline is what an idle machine never needs, times the patience of this run of the suite, which
grows with the load that is measured when the run starts (`measured_patience`). A wait ends as soon
as its condition holds, so patience costs nothing where all is well.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

VARIABLE = "GROVE_PATIENCE"
"""The factor of the product's own deadlines (`engine.config.deadlines`), and of the waits here."""
IDLE = 2.0
"""Of an idle machine: the suite itself has two processes."""
LONGEST = 20.0


def measured_patience() -> float:
    """Returns the factor for this machine, in [2, 20]: that of an idle one times 1 plus the
    processes per core that wanted to compute during the last minute."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(LONGEST, round(IDLE * (1.0 + load), 1))


def patience() -> float:
    """Returns the factor of this run of the suite; 1 outside of it."""
    return float(os.environ.get(VARIABLE) or 1.0)


def eventually(look: Callable[[], T], name: str, seconds: float = 60.0, every: float = 0.05) -> T:
    """Returns the first truthy result of `look`.

    Raises:
        AssertionError: there is none within `seconds` times the patience; it says `name`.
    """
    limit = seconds * patience()
    deadline = time.monotonic() + limit
    while True:
        is_last = time.monotonic() >= deadline
        if result := look():
            return result
        if is_last:
            raise AssertionError(f"waited {limit:.0f} s for {name}")
        time.sleep(every)


async def eventually_async(
    look: Callable[[], T], name: str, seconds: float = 60.0, every: float = 0.02
) -> T:
    """As `eventually`, with the event loop running on between two looks."""
    limit = seconds * patience()
    deadline = time.monotonic() + limit
    while True:
        is_last = time.monotonic() >= deadline
        if result := look():
            return result
        if is_last:
            raise AssertionError(f"waited {limit:.0f} s for {name}")
        await asyncio.sleep(every)
