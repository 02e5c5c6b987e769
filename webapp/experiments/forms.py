"""The launch form. What is possible is decided by `engine.config`, not here."""

from __future__ import annotations

from typing import Any

from django import forms

from engine.faults import ConfigError
from engine.recipes import recipe_names
from webapp.experiments.overrides import parse_overrides
from webapp.projects.models import Project

_SHORTCUTS = {
    "seed": "seed",
    "minutes": "training.minutes",
    "steps": "training.steps",
    "nodes_per_tree": "search.nodes_per_tree",
}


class LaunchForm(forms.Form):
    """Fields left empty keep the recipe's value; `overrides` wins over the fields."""

    project = forms.ModelChoiceField(queryset=Project.objects.none(), empty_label=None)
    recipe = forms.ChoiceField()
    name = forms.CharField(max_length=200, required=False)
    seed = forms.IntegerField(required=False)
    minutes = forms.FloatField(required=False)
    steps = forms.IntegerField(required=False)
    nodes_per_tree = forms.IntegerField(required=False)
    overrides = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        required=False,
        help_text="One setting per line, as in: loss.kl_coefficient = 0.01",
    )

    def __init__(self, projects: list[Project], *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        ids = [project.pk for project in projects]
        self.fields["project"].queryset = Project.objects.filter(pk__in=ids)
        self.fields["recipe"].choices = [(name, name) for name in recipe_names()]

    def clean_overrides(self) -> dict[str, Any]:
        try:
            return parse_overrides(self.cleaned_data["overrides"])
        except ConfigError as error:
            raise forms.ValidationError(str(error)) from None

    def mark(self, problems: list[dict[str, Any]]) -> None:
        """Say at a field what the engine has against its value."""
        fields = {path: field for field, path in _SHORTCUTS.items()}
        for problem in problems:
            if field := fields.get(problem["path"]):
                self.add_error(field, problem["reason"])

    def all_overrides(self) -> dict[str, Any]:
        """Dotted path to value, of the fields that were filled in and of the free lines."""
        given = {
            path: self.cleaned_data[field]
            for field, path in _SHORTCUTS.items()
            if self.cleaned_data[field] is not None
        }
        return {**given, **self.cleaned_data["overrides"]}
