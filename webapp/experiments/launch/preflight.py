"""Preflight report of a run: does it fit, does it have tests, how long is a step.

Invariant: what is not known is reported as unknown; nothing is guessed. Paths were checked before
(`paths.refuse_paths`): the report reveals nothing about files that the user may not name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from django.conf import settings

from engine.config.errors import ConfigError
from engine.config.schema import RunConfig
from engine.config.setting_warnings import setting_warnings
from engine.problems.source import GENERATED
from engine.resources.requirements import Need, needs_of, this_machine
from webapp.accounts.models import User
from webapp.datasets.references import is_reference
from webapp.datasets.server_files.contents import checked_contents
from webapp.experiments.models import Run
from webapp.server_paths import relative

_MOST_RUNS = 50


@dataclass(frozen=True)
class Finding:
    """One line of the report; `mark` is good, bad, warning or unknown."""

    what: str
    mark: str
    text: str


def preflight(config: RunConfig, user: User) -> list[Finding]:
    """Returns findings on settings, hardware, data and time of one run."""
    return [*_settings(config), *_hardware(config), _data(config), _time(config, user)]


def _settings(config: RunConfig) -> list[Finding]:
    return [Finding("Settings", "warning", str(one)) for one in setting_warnings(config)]


def _hardware(config: RunConfig) -> list[Finding]:
    machine = this_machine(config, Path(settings.RUNS_DIR))
    if machine.remote:
        text = "joins an existing Ray cluster, whose resources are checked when the run starts"
        return [Finding("Hardware", "unknown", text)]
    return [
        Finding(
            need.what[:1].upper() + need.what[1:],
            "good" if need.fits else "bad",
            relative(f"needs {need.needs}, has {need.has}{_remedy(need)}"),
        )
        for need in needs_of(settings.SANDBOX_CAPS.of_run(config), machine)
        if not (need.fits and need.what.startswith("agents."))
    ]


def _remedy(need: Need) -> str:
    return "" if need.fits else f": {need.remedy}"


def _data(config: RunConfig) -> Finding:
    if is_reference(config.problems.dataset):
        return Finding("Problems", "good", "every problem was checked against its own tests")
    if config.problems.dataset == GENERATED:
        return Finding("Problems", "good", "made by the generator, each with its tests")
    try:
        contents = checked_contents(config.problems)
    except ConfigError as error:
        return Finding("Problems", "bad", relative(error.problems[0]["reason"]))
    left_out = len(contents.left_out)
    text = "every problem has tests"
    if left_out:
        text += f"; {left_out} that cannot be judged are left out"
    return Finding("Problems", "good", text)


def _time(config: RunConfig, user: User) -> Finding:
    """Returns the seconds of a step in runs of the same shape."""
    step_seconds = [
        run.result["training_seconds"] / run.step
        for run in _of_the_same_shape(config, user)
        if run.step and run.result.get("training_seconds")
    ]
    if not step_seconds:
        text = "unknown: no run of this shape has completed a step"
        return Finding("Time of a step", "unknown", text)
    seconds = median(step_seconds)
    runs = f"{len(step_seconds)} run{'s' if len(step_seconds) > 1 else ''}"
    total = seconds * config.training.steps
    limit = config.training.minutes
    most = min(total, 60 * limit if limit else total)
    in_all = f"{most:.0f} s" if most < 120 else f"{most / 60:.0f} min"
    text = f"about {seconds:.1f} s, as in {runs} of this shape; at most {in_all} in all"
    return Finding("Time of a step", "good", text)


def _of_the_same_shape(config: RunConfig, user: User) -> list[Run]:
    target = shape(config.model_dump(mode="json"))
    same = {
        f"config__{path.replace('.', '__')}": value
        for path, value in target.items()
        if path != "agents"
    }
    runs = (
        Run.objects.visible_to(user).filter(step__gt=0, tracked=False, **same).order_by("-created")
    )
    runs = runs.only("config", "step", "result", "experiment")[: 4 * _MOST_RUNS]
    return [run for run in runs if shape(run.config) == target][:_MOST_RUNS]


def shape(config: dict) -> dict:
    """Returns what a step's time depends on most: models, answers, trees, learner and device."""
    agents = [
        [agent["model"], agent["trainable"], agent["learner_ranks"], agent["generator"]["name"],
         agent["sampling"]["max_prompt_tokens"], agent["sampling"]["max_new_tokens"]]
        for agent in config["agents"]
    ]  # fmt: skip
    return {
        "agents": agents,
        "search.nodes_per_tree": config["search"]["nodes_per_tree"],
        "training.trees_per_step": config["training"]["trees_per_step"],
        "training.extra_trees": config["training"]["extra_trees"],
        "compute.device": config["compute"]["device"],
        "compute.deterministic": config["compute"]["deterministic"],
    }
