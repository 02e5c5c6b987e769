"""Form of a search. The engine validates the settings, not this module."""

from __future__ import annotations

from typing import Any

from django import forms

from engine.config.schema import RunConfig, parse_config
from engine.problems.problem import Problem
from webapp.datasets.models import DatasetVersion
from webapp.experiments.forms import LINES, SettingsForm
from webapp.searches.launch.team import starters
from webapp.searches.problems import Typed, problem_of, typed_problem
from webapp.searches.services import SearchSpec, base_settings

DATASET, PASTE = "dataset", "paste"
_LONG = 200_000
_MOST_MEMBERS = 64


class TeamField(forms.Field):
    """Keys of `searches.launch.team`, each a checkbox of that name."""

    widget = forms.SelectMultiple

    def to_python(self, value: Any) -> list[str]:
        keys = [str(one) for one in value or []]
        if len(keys) > _MOST_MEMBERS or any("\0" in key or len(key) > 200 for key in keys):
            raise forms.ValidationError(f"Choose at most {_MOST_MEMBERS} models from the list.")
        return keys


class SearchForm(SettingsForm):
    """Form of a new search. `source` is whether the problem is from a dataset or pasted."""

    team = TeamField(required=False)
    source = forms.ChoiceField(choices=[(DATASET, DATASET), (PASTE, PASTE)])
    version = forms.ModelChoiceField(queryset=DatasetVersion.objects.none(), required=False)
    problem = forms.CharField(max_length=500, required=False)
    statement = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 5}), required=False, max_length=_LONG
    )
    entry_point = forms.CharField(max_length=200, required=False)
    public_tests = forms.CharField(
        widget=forms.Textarea(attrs={**LINES, "rows": 5}), required=False, max_length=_LONG
    )
    private_tests = forms.CharField(
        widget=forms.Textarea(attrs={**LINES, "rows": 3}), required=False, max_length=_LONG
    )

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        versions = DatasetVersion.objects.visible_to(self.user).select_related("dataset__project")
        self.fields["version"].queryset = versions.order_by("dataset__name", "-number")

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if given.get("source") == DATASET and "version" not in self.errors:
            if given.get("version") is None:
                self.add_error("version", "Choose a dataset, or paste a problem.")
            elif not given.get("problem"):
                self.add_error("problem", "Name a problem of the dataset by its id.")
        return given

    def base(self) -> RunConfig:
        """Returns the settings before any change, of any team: no field of the form is an
        agent's."""
        return parse_config(base_settings(list(starters().values())))

    def requested_problem(self) -> Problem:
        """Returns the requested problem. Raises `ConfigError` with every error."""
        given = self.cleaned_data
        if given["source"] == DATASET:
            return problem_of(given["version"], given["problem"])
        fields = ("statement", "entry_point", "public_tests", "private_tests")
        return typed_problem(Typed(**{name: given[name] for name in fields}))

    def changes(self) -> dict[str, Any]:
        """Returns the settings that differ from `base`, by path."""
        return {**self.typed(self.base()), **self.cleaned_data["overrides"]}

    def spec(self) -> SearchSpec:
        """Returns the requested search. Raises `ConfigError` if the problem is invalid."""
        given = self.cleaned_data
        version = given["version"] if given["source"] == DATASET else None
        problem = self.requested_problem()
        return SearchSpec(given["team"], problem, version, self.changes(), given["name"])
