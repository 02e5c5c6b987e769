"""Timer of the phases of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Adds the seconds of the block to `phases[name]`; an error of the block gets it as `phase`."""
    started = time.perf_counter()
    try:
        yield
    except Exception as error:
        error.phase = getattr(error, "phase", name)
        raise
    finally:
        phases[name] = phases.get(name, 0.0) + time.perf_counter() - started
