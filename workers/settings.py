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


def metrics_address() -> tuple[str, int] | None:
    """Returns where GROVE_WORKER_METRICS, as in 127.0.0.1:9101, has the worker serve its metrics;
    None if it is not set."""
    value = os.environ.get("GROVE_WORKER_METRICS", "")
    if not value:
        return None
    host, _, port = value.rpartition(":")
    name = "GROVE_WORKER_METRICS"
    is_port = port.isascii() and port.isdigit() and len(port) < 6
    if not host or not is_port or not 0 < int(port) < 65536:
        raise SettingError(name, value, "give an address and a port, as in 127.0.0.1:9101")
    if not settings.METRICS_TOKEN:
        raise SettingError(name, value, "set GROVE_METRICS_TOKEN too: readers need a token")
    return host.strip("[]"), int(port)


def work_directory() -> Path:
    """Returns the directory in which services and engines start: the checkout, or a dedicated
    folder of GROVE_VAR, because what lies in it can be imported. Creates it if it is missing."""
    if IS_CHECKOUT:
        return settings.BASE_DIR
    directory = settings.GROVE_VAR / "work"
    directory.mkdir(parents=True, exist_ok=True)
    return directory
