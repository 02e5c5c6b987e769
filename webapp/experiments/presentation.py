"""Presentation of a run to browsers and programs: the same fields on pages, REST and stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.urls import reverse

from engine.config.agents import GeneratorName
from engine.config.methods import figures_of, formula_of
from engine.events.vocabulary import RunState, Verdict
from webapp.experiments.models import Run
from webapp.experiments.run_settings.registered_models import registered_models
from webapp.experiments.tracked_runs import config_of

STATUS_COLUMNS = (
    "state",
    "stop_requested",
    "step",
    "steps",
    "waiting_name",
    "waiting_since",
    "waiting_deadline",
    "error",
    "restarts",
    "queued_at",
    "started_at",
    "finished_at",
    "result",
)
"""Columns of the run's row that `status` reads."""


def status(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a run that change while it runs: `STATUS_COLUMNS`, the wait as one
    object."""
    fields = {name: row[name] for name in STATUS_COLUMNS if not name.startswith("waiting_")}
    fields["waiting"] = None
    if row["waiting_name"]:
        fields["waiting"] = {
            "name": row["waiting_name"],
            "since": row["waiting_since"],
            "deadline": row["waiting_deadline"],
        }
    return fields


def status_of(run: Run) -> dict[str, Any]:
    return status({name: getattr(run, name) for name in STATUS_COLUMNS})


def summary(run: Run) -> dict[str, Any]:
    """Returns the run as in REST: its identity and its status."""
    return {
        "id": run.pk,
        "name": run.experiment.name,
        "number": run.number,
        "project": run.project.pk,
        "seed": run.seed,
        "variant": run.variant,
        "parent": run.parent_id,
        "parent_step": run.parent_step,
        "priority": run.priority,
        "created": run.created,
        "created_by": run.created_by.username,
        "epoch": run.epoch,
        "head_seq": run.head_seq,
        "outside": run.outside,
        "tracked": run.tracked,
        "tags": run.tags,
        "archived_at": run.archived_at,
        **status_of(run),
    }


def legend(states: type[RunState] | type[Verdict]) -> list[dict[str, str]]:
    """Returns value, label and colour (a palette name) of every member, in order."""
    return [{"value": s.value, "label": s.label, "colour": s.colour} for s in states]


def page_data(run: Run, can_operate: bool) -> dict[str, Any]:
    """Returns the initial data of the run page's scripts, as plain JSON values."""
    agents = [] if run.tracked else run.config["agents"]
    return {
        "run": {
            "id": str(run.pk),
            "name": run.experiment.name,
            "number": run.number,
            "epoch": str(run.epoch),
            "seed": run.seed,
            "can_operate": can_operate,
            "begun": run.head_seq > 0,
            "tracked": run.tracked,
        },
        "status": status_of(run),
        "states": legend(RunState),
        "verdicts": legend(Verdict),
        "agents": [_agent(run, agent) for agent in agents],
        "config": run.config,
        "figures": figures_of(run.config),
        "formula": formula_of(run.config),
        "program": config_of(run) if run.tracked else None,
        "urls": {
            "stream": "/stream",
            "run": f"/api/v1/runs/{run.pk}",
            "state": f"/api/v1/runs/{run.pk}/state",
            "events": f"/api/v1/runs/{run.pk}/events",
            "moments": f"/api/v1/runs/{run.pk}/moments",
            "step": f"/api/v1/runs/{run.pk}/steps/STEP/trees",
            "tree": f"/api/v1/runs/{run.pk}/trees/TREE",
            "node": f"/api/v1/runs/{run.pk}/trees/TREE/nodes/NODE",
            "metrics": f"/api/v1/runs/{run.pk}/metrics",
            "logged": f"/api/v1/runs/{run.pk}/logged",
            "stop": reverse("stop-run", args=[run.pk]),
            "resume": reverse("resume-run", args=[run.pk]),
        },
    }


_page_parts: dict[str, Callable[[Run], Any]] = {}


def add_page_part(name: str, part: Callable[[Run], Any]) -> None:
    """Registers what another app adds to the initial data of the run page, under `name`."""
    _page_parts[name] = part


def page_parts(run: Run) -> dict[str, Any]:
    """Returns the data that other apps add to `page_data`, by name."""
    return {name: part(run) for name, part in _page_parts.items()}


def _agent(run: Run, agent: Mapping[str, Any]) -> dict[str, Any]:
    version = registered_models().label_of(agent["model"], run.project)
    return {
        "name": agent["name"],
        "model": agent["model"],
        "version": version.name if version else None,
        "parameters": version.parameters if version else None,
        "trainable": agent["trainable"],
        "owner": agent.get("shares_weights_with"),
        "role": agent["role"],
        "drafts": _shows_drafts(agent),
    }


def _shows_drafts(agent: Mapping[str, Any]) -> bool:
    """Returns whether the text of the agent's nodes is known while they are being written: vLLM and
    endpoints return whole answers."""
    is_endpoint = agent["model"].startswith(("http://", "https://"))
    generator = agent.get("generator") or {}
    return not is_endpoint and generator.get("name", GeneratorName.TORCH) == GeneratorName.TORCH
