"""Forms of reports."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.accounts.models import User
from webapp.names import NameField
from webapp.projects.models import Project
from webapp.projects.permissions import Action, permitted_projects
from webapp.reports.services import LONGEST, LONGEST_TITLE


class ReportForm(forms.Form):
    title = NameField(max_length=LONGEST_TITLE)
    text = forms.CharField(
        required=False,
        max_length=LONGEST,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 22, "class": "report-text"}),
        help_text="Markdown is supported. @name notifies a member.",
    )

    def clean_text(self) -> str:
        """A browser sends two characters for each end of a line."""
        return self.cleaned_data["text"].replace("\r\n", "\n")


class EditReportForm(ReportForm):
    version = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)
    """The version that the edit began with."""


class NewReportForm(ReportForm):
    project = forms.ModelChoiceField(Project.objects.none(), empty_label=None)
    field_order = ("project", "title", "text")

    def __init__(self, user: User, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        ids = [project.pk for project in permitted_projects(user, Action.COMMENT)]
        self.fields["project"].queryset = Project.objects.filter(pk__in=ids).order_by("name")
