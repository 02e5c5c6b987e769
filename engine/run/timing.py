"""Timer of the phases of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from engine.run.spans import measured, phase_span


@contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Adds the seconds of the block to `phases[name]`, and the block to the span of this phase; an
    error of the block gets it as `phase`."""
    started = time.perf_counter()
    try:
        with phase_span(name):
            yield
    except Exception as error:
        error.phase = getattr(error, "phase", name)
        raise
    finally:
        seconds = time.perf_counter() - started
        phases[name] = phases.get(name, 0.0) + seconds
        measured(name, seconds)
