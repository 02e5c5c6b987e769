"""Page of a new experiment: its starting point, and the validation of the form."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.exceptions import ValidationError

from engine.config.errors import ConfigError
from engine.config.schema import RunConfig, parse_config
from engine.recipes import agent_keys, load_recipe, override, recipe_names
from webapp.accounts.models import User
from webapp.datasets.selectors import trainable_versions
from webapp.experiments.forms import FIELD, LaunchForm, SettingsForm
from webapp.experiments.launch.creation import create_experiment, create_from, planned
from webapp.experiments.launch.preflight import preflight
from webapp.experiments.models import Experiment, Run
from webapp.experiments.run_settings.presets import PRESETS
from webapp.experiments.run_settings.settings_schema import (
    NEW_AGENT,
    Group,
    new_agent,
    setting_groups,
)
from webapp.experiments.run_settings.toml import document, lines
from webapp.experiments.scheduling.queue import refuse_too_many
from webapp.experiments.selectors import visible_runs
from webapp.projects.permissions import Action, require

DEFAULT_RECIPE = "demo"


class FormRefused(ValueError):
    """Raised when the form itself is invalid; its `errors` give the reasons."""


def start(form: LaunchForm) -> Experiment:
    """Creates the experiment that the form requests, queued.

    Raises:
        FormRefused, ConfigError: the form is invalid, or cannot run; nothing was created.
    """
    if not form.is_valid():
        raise FormRefused
    require(form.user, Action.OPERATE, form.cleaned_data["project"])
    arguments = form.cleaned_data["project"], form.user, form.request()
    if source := form.cleaned_data["source"]:
        return create_from(*arguments, source, form.cleaned_data["step"])
    return create_experiment(*arguments)


def form_report(form: LaunchForm, *, with_preflight: bool) -> dict[str, Any]:
    """Returns the data that the page shows alongside the form, as plain JSON.

    problems [{path, value, reason}], changes {path: text of the field}, lines (the changes as
    text), agents (their names in paths, null if unknown), runs (their number), toml (all settings
    of the first), preflight [{what, mark, text}] or null if not requested.
    """
    empty = {"changes": {}, "lines": "", "runs": 0, "toml": "", "preflight": None}
    if not form.is_valid():
        return {"problems": form_problems(form), "agents": None, **empty}
    base, request = form.base(), form.request()
    keys = keys_of(base, request.overrides)
    try:
        runs = planned(request, form.cleaned_data["project"], form.origin())
        refuse_too_many(form.cleaned_data["project"], form.user, len(runs))
    except ConfigError as error:
        return {"problems": problems_of(form, error), "agents": keys, **empty}
    config = runs[0].config
    findings = preflight(config, form.user) if with_preflight else None
    return {
        "problems": [],
        "changes": changed_fields(base, request.overrides),
        "agents": keys,
        "lines": lines(request.overrides),
        "runs": len(runs),
        "toml": document(config.model_dump(mode="json")),
        "preflight": findings and [asdict(finding) for finding in findings],
    }


def changed_fields(base: RunConfig, overrides: dict[str, Any]) -> dict[str, str]:
    """Returns the text of every setting's field that differs from `base`."""
    data = base.model_dump(mode="json")
    override(data, overrides)
    after, keys = parse_config(data), keys_of(base, overrides)
    present = {agent.name for agent in base.agents}
    added = [new_agent(key) for key in keys if key not in present]
    before = _shown([*setting_groups(base), *added])
    shown = _shown(setting_groups(after, keys))
    return {path: text for path, text in shown.items() if before.get(path, text) != text}


def _shown(groups: list[Group]) -> dict[str, str]:
    return {setting.path: setting.shown for group in groups for setting in group.settings}


def keys_of(base: RunConfig, overrides: dict[str, Any]) -> list[str]:
    """Returns the names in paths of the agents of `base` that overrides keep, and of those that
    they add."""
    return agent_keys([agent.name for agent in base.agents], overrides)


def form_problems(form: SettingsForm) -> list[dict[str, Any]]:
    """Returns the faults of the form itself, in the format of those of settings."""
    return [
        {"path": field, "value": str(form.data.get(field, ""))[:200], "reason": reason}
        for field, reasons in form.errors.items()
        for reason in reasons
    ]


def problems_of(form: LaunchForm, error: ConfigError) -> list[dict[str, Any]]:
    """Returns the problems of a valid form whose settings cannot run."""
    return with_agent_names(error.problems, keys_of(form.base(), form.request().overrides))


def with_agent_names(problems: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
    """Returns the problems with paths that name agents as the form does, not by index."""
    names = {str(index): key for index, key in enumerate(keys)}
    renamed = []
    for problem in problems:
        parts = problem["path"].split(".")
        if len(parts) > 1 and parts[0] == "agents":
            parts[1] = names.get(parts[1], parts[1])
        renamed.append({**problem, "path": ".".join(parts)})
    return renamed


def page(form: LaunchForm, query: dict[str, str], user: User) -> dict[str, Any]:
    """Returns the template's context, see `views.launch`; `query` is the address's query."""
    given = {**query, **form.data.dict()} if form.is_bound else query
    source = _source(given.get("source", ""), user)
    recipe = given.get("recipe") if given.get("recipe") in recipe_names() else DEFAULT_RECIPE
    base = parse_config(source.config) if source else load_recipe(recipe)
    step = given.get("step", "")
    return {
        "form": form,
        "groups": setting_groups(base),
        "new_agent": new_agent(NEW_AGENT),
        "values": posted(form),
        "recipes": recipe_names(),
        "presets": [(preset, lines(preset.overrides)) for preset in PRESETS],
        "base": base,
        "source": source,
        "step": int(step) if source and step.isascii() and step.isdigit() else None,
        "field": FIELD,
        "stored_datasets": trainable_versions(user),
    }


def _source(given: str, user: User) -> Run | None:
    try:
        return (
            visible_runs(user).that_train().filter(pk=given, tracked=False).first()
            if given
            else None
        )
    except ValidationError:  # not a UUID
        return None


def posted(form: SettingsForm) -> dict[str, str]:
    """Returns the contents of the settings' fields when the form was sent."""
    if not form.is_bound:
        return {}
    sent = form.data.items()
    return {name.removeprefix(FIELD): text for name, text in sent if name.startswith(FIELD)}
