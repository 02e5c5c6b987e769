"""Forms of the pages of models."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import RegexValidator

from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion
from webapp.projects.models import Project
from webapp.projects.selectors import visible_projects
from webapp.registry.evaluations import EvaluationSettings
from webapp.registry.models import ModelVersion
from webapp.registry.promotion import MOST_REASON_CHARS, NAME
from webapp.registry.selectors import datasets_for

_NAMES = RegexValidator(f"^{NAME}$", "Give small letters, digits and -, as in champion.")


class PromotionForm(forms.Form):
    alias = forms.CharField(
        max_length=40, validators=[_NAMES], widget=forms.TextInput({"list": "aliases"})
    )
    version = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    """Empty removes the alias."""
    reason = forms.CharField(max_length=MOST_REASON_CHARS, widget=forms.Textarea({"rows": 2}))


class DecisionForm(forms.Form):
    do = forms.ChoiceField(choices=[("approve", "approve"), ("refuse", "refuse")])
    words = forms.CharField(max_length=MOST_REASON_CHARS, required=False)


class NotesForm(forms.Form):
    notes = forms.CharField(max_length=20_000, required=False, widget=forms.Textarea({"rows": 8}))


class SecondPairForm(forms.Form):
    second_pair = forms.BooleanField(required=False)


class EvaluationForm(forms.Form):
    dataset = forms.ModelChoiceField(queryset=DatasetVersion.objects.none(), empty_label=None)
    problems = forms.IntegerField(
        min_value=1, max_value=1_000_000, initial=300, help_text="Maximum number."
    )
    samples = forms.IntegerField(
        min_value=1, max_value=256, initial=1, label="Answers", help_text="Per problem."
    )
    nodes = forms.IntegerField(
        min_value=1, max_value=5000, initial=1, label="Nodes",
        help_text="Of each problem's search tree; 1 means no search.",
    )  # fmt: skip

    def __init__(self, version: ModelVersion, *args: Any):
        super().__init__(*args)
        ids = [one.pk for one in datasets_for(version)]
        versions = DatasetVersion.objects.filter(pk__in=ids).select_related("dataset")
        self.fields["dataset"].queryset = versions.order_by("-created", "-pk")

    def evaluation_settings(self) -> EvaluationSettings:
        """Returns the evaluation settings of a valid form."""
        return EvaluationSettings(
            **{name: self.cleaned_data[name] for name in ("problems", "samples", "nodes")}
        )


class PretrainedForm(forms.Form):
    """A request of a pretrained model; whether it must be accepted is decided with the request."""

    package = forms.CharField(max_length=100, widget=forms.HiddenInput)
    project = forms.ModelChoiceField(
        Project.objects.none(), error_messages={"invalid_choice": "Choose a project from the list."}
    )
    name = forms.CharField(max_length=100, required=False)
    """Of the model; empty is the short name of the catalogue."""
    accept_licence = forms.BooleanField(required=False)

    def __init__(self, user: User, *args: Any):
        super().__init__(*args)
        self.fields["project"].queryset = visible_projects(user)
