"""Page of a new search: its choices, and the validation of the form."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.config.errors import ConfigError
from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion
from webapp.experiments.forms import FIELD
from webapp.experiments.launch.launch_page import (
    FormRefused,
    changed_fields,
    form_problems,
    posted,
    with_agent_names,
)
from webapp.experiments.run_settings.settings_schema import Group, setting_groups
from webapp.experiments.run_settings.toml import document, lines
from webapp.experiments.scheduling.queue import refuse_too_many
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require
from webapp.searches.forms import DATASET, SearchForm
from webapp.searches.launch import defaults
from webapp.searches.launch.examples import EXAMPLES
from webapp.searches.launch.preflight import preflight
from webapp.searches.launch.presets import presets
from webapp.searches.launch.team import Choice, choices
from webapp.searches.models import Search
from webapp.searches.services import create_search, planned

_GROUPS = ("search", "", "sandbox")
"""Tables of settings that a search uses; others can be written as text."""

_OF_PROBLEMS = ("source", "version", "problem", "statement")


def start(form: SearchForm) -> Search:
    """Creates the search that the form requests, queued.

    Raises:
        FormRefused, ConfigError: the form is invalid, or cannot run; nothing was created.
    """
    if not form.is_valid():
        raise FormRefused
    project = form.cleaned_data["project"]
    require(form.user, Action.OPERATE, project)
    return create_search(project, form.user, form.spec())


def form_report(form: SearchForm, *, with_preflight: bool) -> dict[str, Any]:
    """Returns the data that the page shows alongside the form, as `launch_page.form_report`."""
    empty = {"changes": {}, "lines": "", "runs": 0, "toml": "", "preflight": None}
    if not form.is_valid():
        return {"problems": form_problems(form), **empty}
    project, base = form.cleaned_data["project"], form.base()
    try:
        spec = form.spec()
        config = planned(project, spec.team, spec.overrides)
        refuse_too_many(project, form.user)
    except ConfigError as error:
        return {
            "problems": with_agent_names(error.problems, [agent.name for agent in base.agents]),
            **empty,
        }
    fields = {path: value for path, value in spec.overrides.items() if path in _paths(form)}
    findings = preflight(project, config, spec.problem) if with_preflight else None
    return {
        "problems": [],
        "changes": changed_fields(base, fields),
        "lines": lines(spec.overrides),
        "runs": 1,
        "toml": document(config.model_dump(mode="json")),
        "preflight": findings and [asdict(finding) for finding in findings],
    }


def _paths(form: SearchForm) -> set[str]:
    return {setting.path for group in groups(form) for setting in group.settings}


def groups(form: SearchForm) -> list[Group]:
    """Returns the settings that have fields."""
    by_path = {group.path: group for group in setting_groups(form.base())}
    return [by_path[path] for path in _GROUPS]


def page(form: SearchForm, projects: list[Project], user: User) -> dict[str, Any]:
    """Returns the template's context, see `views.new_search`."""
    given = form.data if form.is_bound else form.initial
    project = next((one for one in projects if str(one.pk) == str(given.get("project"))), None)
    project = project or (projects[0] if projects else None)
    chosen = form.data.getlist("team") if form.is_bound else form.initial.get("team")
    versions = DatasetVersion.objects.filter(dataset__project=project).select_related("dataset")
    offered = presets(project) if project else []
    preset = next((one for one in offered if one.key == given.get("preset")), None)
    if preset and not form.is_bound:
        form.initial.update(preset.problem)
        chosen = preset.team
    if not form.is_bound and not any(name in form.initial for name in _OF_PROBLEMS):
        form.initial.update(defaults.problem(versions))
    return {
        "form": form,
        "project": project,
        "projects": projects,
        "groups": groups(form),
        "values": posted(form),
        "field": FIELD,
        "choices": _choices(project),
        "chosen": defaults.team(project) if chosen is None else chosen,
        "presets": [(one, one.query(project)) for one in offered if project],
        "preset": preset,
        "examples": [{"title": one.title, **one.fields} for one in EXAMPLES],
        "versions": versions.order_by("dataset__name", "-number"),
        "source": given.get("source") or (DATASET if versions else "paste"),
    }


def _choices(project: Project | None) -> list[Choice]:
    return choices(project) if project else []
