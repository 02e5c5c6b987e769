"""What a worker may be told by its environment."""

from __future__ import annotations

import os
import shlex

from webapp.environment import read_integer
from workers.engine_process import DEFAULT_COMMAND, EngineCommand


def engine_command() -> EngineCommand:
    """GROVE_ENGINE_COMMAND, e.g. `srun python -m engine train`; else this Python's engine."""
    words = shlex.split(os.environ.get("GROVE_ENGINE_COMMAND", ""))
    return words or DEFAULT_COMMAND


def runs_at_once() -> int:
    """GROVE_RUNS_AT_ONCE: how many runs one worker keeps at a time."""
    return read_integer(os.environ, "GROVE_RUNS_AT_ONCE", 1, 1, 256)
