"""Waiting for the effect of another process, with a deadline and a name."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], name: str, seconds: float = 120.0) -> T:
    """Returns the first truthy result of `look`; fails after the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := look():
            return result
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds:.0f} s for {name}")
