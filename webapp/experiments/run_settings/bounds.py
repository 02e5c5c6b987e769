"""Refusal of settings that no machine of this site runs.

Invariant: a run is refused for the machine only if its engine runs on this one. Where engines may
run elsewhere (a cluster, workers behind a broker, a launcher) their machine refuses, at the start.
"""

from __future__ import annotations

import os

from django.conf import settings

from engine.config.schema import RunConfig
from engine.resources.bounds import bounds
from engine.resources.machine_cores import machine_cores
from webapp.experiments.scheduling.states import NotAllowed


def refuse_beyond_machine(config: RunConfig) -> None:
    """Raises `ConfigError` with each setting that requests more programs, memory or threads than
    this machine has for one engine."""
    if not _is_here():
        return
    lowered, size = settings.SANDBOX_CAPS.of_run(config), settings.ENGINE_MEMORY_BYTES
    problems = [
        {
            "path": one.path,
            "value": one.value,
            "reason": f"{one.what}: {one.amount}, and this server has {one.has}; {one.remedy}",
        }
        for one in bounds(lowered, machine_cores(), size)
        if not one.fits
    ]
    if problems:
        raise NotAllowed(problems)


def _is_here() -> bool:
    elsewhere = ("RAY_ADDRESS", "GROVE_ENGINE_COMMAND")
    is_embedded = settings.BROKER_URL.startswith("filesystem")
    return is_embedded and not any(os.environ.get(name) for name in elsewhere)
