"""Settings of a worker, from its environment."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from django.conf import settings

from webapp.config.environment import SettingError, read_integer
from webapp.config.installation import IS_CHECKOUT
from workers.runs.engine_process import DEFAULT_COMMAND, EngineCommand


def engine_command() -> EngineCommand:
    """Returns GROVE_ENGINE_COMMAND, e.g. `srun python -m engine train`; by default this Python's
    engine. A search is started by the same words with `search` as the last."""
    value = os.environ.get("GROVE_ENGINE_COMMAND", "")
    try:
        return shlex.split(value) or DEFAULT_COMMAND
    except ValueError as error:
        remedy = f"write it as in a shell ({error})"
        raise SettingError("GROVE_ENGINE_COMMAND", value, remedy) from None


def runs_at_once() -> int:
    """Returns GROVE_RUNS_AT_ONCE: how many runs one worker supervises concurrently."""
    return read_integer(os.environ, "GROVE_RUNS_AT_ONCE", 1, 1, 256)


def work_directory() -> Path:
    """Returns the directory in which services and engines start: the checkout, or a dedicated
    folder of GROVE_VAR, because what lies in it can be imported. Creates it if it is missing."""
    if IS_CHECKOUT:
        return settings.BASE_DIR
    directory = settings.GROVE_VAR / "work"
    directory.mkdir(parents=True, exist_ok=True)
    return directory
