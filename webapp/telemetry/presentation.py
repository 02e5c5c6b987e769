"""Data of the page of charts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from engine.config.methods import figures_of
from engine.events.vocabulary import RunState
from webapp.experiments.models import Run
from webapp.experiments.presentation import legend
from webapp.experiments.tracked_runs import config_of

MOST_RUNS = 20
"""More lines cannot be distinguished in a chart."""


def charts_data(runs: Sequence[Run]) -> dict[str, Any]:
    """Returns {runs, states}, as the scripts of the page need them: `charts_of` each run, and the
    states as [{value, label, colour}]."""
    return {"runs": [charts_of(run) for run in runs], "states": legend(RunState)}


def charts_of(run: Run) -> dict[str, Any]:
    """Returns {id, name, number, label, seed, variant, group, agents, owners, figures, url, steps}:
    `group` is the same for runs that differ only in their seed, `figures` are the titles of those
    of its methods, `url` serves the metrics."""
    agents = run.config.get("agents", ())
    return {
        "id": str(run.pk),
        "name": run.experiment.name,
        "number": run.number,
        "label": f"{run.experiment.name} #{run.number}",
        "seed": run.seed,
        "variant": variant_text(run),
        "group": config_hash(config_of(run)),
        "agents": [agent["name"] for agent in agents],
        "owners": {agent["name"]: agent.get("shares_weights_with") for agent in agents},
        "figures": figures_of(run.config),
        "url": f"/api/v1/runs/{run.pk}/metrics",
        "steps": f"/api/v1/runs/{run.pk}/steps",
    }


def variant_text(run: Run) -> str:
    """Returns the settings, except the seed, that distinguish the run in its experiment:
    `path = value, ...`."""
    varied = ((path, value) for path, value in run.variant.items() if path != "seed")
    return ", ".join(f"{path} = {value}" for path, value in varied)


def config_hash(config: dict[str, Any]) -> str:
    """Returns a hash that is the same for runs that differ only in their seed."""
    text = json.dumps({**config, "seed": None}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
