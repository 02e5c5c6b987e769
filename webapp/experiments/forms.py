"""Launch form. `engine.config.schema` validates the settings, not this module.

Invariant: only what differs from the recipe, or from the run that is cloned or forked, is stored;
a line of text overrides the field of the same setting.
"""

from __future__ import annotations

from typing import Any

from django import forms

from engine.config.errors import ConfigError
from engine.config.schema import RunConfig, parse_config
from engine.recipes import load_recipe, recipe_names
from webapp.accounts.models import User
from webapp.experiments.launch.creation import Origin, request_from
from webapp.experiments.launch.sweeps import Request, parse_seeds, parse_sweep
from webapp.experiments.models import Run
from webapp.experiments.run_settings.overrides import parse_overrides, typed_value
from webapp.experiments.run_settings.settings_schema import Setting, setting_groups
from webapp.experiments.selectors import visible_runs
from webapp.names import NameField
from webapp.projects.models import Project

FIELD = "set:"
"""Prefix of the names of the settings' fields."""
LOWEST, HIGHEST = -100, 100
"""Bounds of a run's priority."""
LINES = {"rows": 8, "spellcheck": "false", "autocomplete": "off"}
"""Attributes of a field of code."""


class SettingsForm(forms.Form):
    """Base of forms with settings, each as a field and as a line of text, in a project."""

    project = forms.ModelChoiceField(queryset=Project.objects.none(), empty_label=None)
    name = NameField(max_length=200, required=False)
    overrides = forms.CharField(
        widget=forms.Textarea(attrs=LINES), required=False, max_length=100_000
    )

    def __init__(self, user: User, projects: list[Project], *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.user = user
        ids = [project.pk for project in projects]
        self.fields["project"].queryset = Project.objects.filter(pk__in=ids)

    def clean_overrides(self) -> dict[str, Any]:
        return _parsed(parse_overrides, self.cleaned_data["overrides"])

    def typed(self, base: RunConfig) -> dict[str, Any]:
        """Returns the settings whose field differs from `base`."""
        settings = [one for group in setting_groups(base) for one in group.settings]
        values = {}
        for setting in settings:
            text = self.data.get(FIELD + setting.path, setting.shown).replace("\r\n", "\n")
            if text != setting.shown and (text or setting.optional or setting.is_text):
                values[setting.path] = _value(setting, text)
        return values


class LaunchForm(SettingsForm):
    """Form of a new experiment. `source` is a run to clone or, with `step`, to fork."""

    source = forms.UUIDField(required=False, widget=forms.HiddenInput)
    step = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)
    recipe = forms.ChoiceField(required=False)
    seeds = forms.CharField(max_length=2000, required=False)
    sweep = forms.CharField(
        widget=forms.Textarea(attrs={**LINES, "rows": 2}), required=False, max_length=10_000
    )

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fields["recipe"].choices = [(name, name) for name in recipe_names()]

    def clean_source(self) -> Run | None:
        """Returns the run, if the user may see it."""
        given = self.cleaned_data["source"]
        if given is None:
            return None
        run = visible_runs(self.user).that_train().filter(pk=given, tracked=False).first()
        if run is None:
            raise forms.ValidationError("There is no such run of Grove, or you may not see it.")
        return run

    def clean_seeds(self) -> list[int]:
        return _parsed(parse_seeds, self.cleaned_data["seeds"])

    def clean_sweep(self) -> dict[str, list[Any]]:
        return _parsed(parse_sweep, self.cleaned_data["sweep"])

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if not given.get("recipe") and not given.get("source") and "recipe" not in self.errors:
            self.add_error("recipe", "Choose a recipe.")
        return given

    def base(self) -> RunConfig:
        """Returns the settings before any change."""
        if source := self.cleaned_data["source"]:
            return parse_config(source.config)
        return load_recipe(self.cleaned_data["recipe"])

    def origin(self) -> Origin | None:
        """Returns the checkpoint to fork from."""
        source, step = self.cleaned_data["source"], self.cleaned_data["step"]
        return Origin(source, step) if source and step is not None else None

    def request(self) -> Request:
        """Returns the request of the form."""
        given, source = self.cleaned_data, self.cleaned_data["source"]
        varied = {*given["sweep"], *(["seed"] if given["seeds"] else [])}
        typed = {k: v for k, v in self.typed(self.base()).items() if k not in varied}
        fields = {
            "overrides": {**typed, **given["overrides"]},
            **{name: given[name] for name in ("name", "seeds", "sweep")},
        }
        return request_from(source, **fields) if source else Request(given["recipe"], **fields)


def _parsed(parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except ConfigError as error:
        raise forms.ValidationError(str(error)) from None


def _value(setting: Setting, text: str) -> Any:
    if not text and setting.optional:
        return None
    return text if setting.is_text or setting.kind == "choice" else typed_value(text)


class PriorityForm(forms.Form):
    priority = forms.IntegerField(min_value=LOWEST, max_value=HIGHEST)


class NoteForm(forms.Form):
    text = forms.CharField(max_length=4000)
