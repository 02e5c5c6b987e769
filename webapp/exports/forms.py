"""Form that requests an export; the query of its address selects the runs."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.accounts.models import User
from webapp.experiments.models import Run
from webapp.exports.models import Format, Table
from webapp.projects.models import Project
from webapp.projects.selectors import visible_projects


class ExportForm(forms.Form):
    project = forms.ModelChoiceField(
        Project.objects.none(), error_messages={"invalid_choice": "Choose a project from the list."}
    )
    run = forms.ModelChoiceField(Run.objects.none(), required=False, widget=forms.HiddenInput)
    table = forms.ChoiceField(choices=Table.choices, initial=Table.RUNS)
    format = forms.ChoiceField(choices=Format.choices, initial=Format.CSV)

    def __init__(self, user: User, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = visible_projects(user)
        self.fields["project"].empty_label = None
        self.fields["run"].queryset = Run.objects.visible_to(user)

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        run, project = given.get("run"), given.get("project")
        if run and project and run.project != project:
            self.add_error("project", f"The run belongs to {run.project}.")
        return given
