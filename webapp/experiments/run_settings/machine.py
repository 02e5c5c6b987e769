"""Settings that the machine of a run completes, where its request leaves them out.

Invariant: a run is completed once, before its first engine, by the worker that starts it; every
later engine of the run reads the same settings, whatever machine it is on.
"""

from __future__ import annotations

from typing import Any

from engine.config.schema import RunConfig, parse_config
from engine.recipes import override
from engine.resources.small_machine import SmallMachine, with_defaults
from webapp.experiments.models import Run


def complete(run: Run, machine: SmallMachine | None) -> None:
    """Stores the settings of a run as completed for `machine` (None: one with GPUs, which needs
    nothing); a run that was completed before is left alone."""
    if run.given is None:
        return
    run.config = _completed(run, run.given, machine).model_dump(mode="json")
    run.given = None
    run.save(update_fields=["config", "given"])


def _completed(run: Run, given: dict[str, Any], machine: SmallMachine | None) -> RunConfig:
    config = parse_config(run.config)
    located = {agent.name: agent.model for agent in config.agents}
    learns = not (hasattr(run, "search") or hasattr(run, "evaluation"))
    _, added = with_defaults(given, machine, learns=learns, located=located)
    data = config.model_dump(mode="json")
    override(data, added)
    return parse_config(data)
