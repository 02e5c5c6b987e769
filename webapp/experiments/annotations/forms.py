"""Forms of annotations: tags, notes, and actions on the runs selected in the list."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.urls import reverse

from webapp.accounts.models import User
from webapp.experiments.annotations import annotations
from webapp.experiments.models import Run
from webapp.projects.permissions import Action, require


class AboutForm(forms.Form):
    """Tags and notes of a run."""

    tags = forms.CharField(
        required=False,
        help_text="Words with spaces between them, as in: baseline wide-trees",
    )
    notes = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 14}),
        required=False,
        strip=False,
        help_text="Markdown: # heading, **strong**, lists, tables, links. No HTML, no pictures.",
    )

    def __init__(self, run: Run, *args: Any, **kwargs: Any):
        initial = {"tags": " ".join(run.tags), "notes": run.notes}
        super().__init__(*args, initial=initial, **kwargs)

    def clean_tags(self) -> list[str]:
        return _checked(annotations.clean_tags, self.cleaned_data["tags"].replace(",", " ").split())

    def clean_notes(self) -> str:
        return _checked(annotations.clean_notes, self.cleaned_data["notes"])


def _checked(check: Any, value: Any) -> Any:
    try:
        return check(value)
    except annotations.InvalidAnnotation as error:
        raise forms.ValidationError(f"{error.value}: {error.reason}") from None


class RunsField(forms.MultipleChoiceField):
    """Ids of runs, each once."""

    def to_python(self, value: Any) -> list[uuid.UUID]:
        try:
            return list(dict.fromkeys(map(uuid.UUID, super().to_python(value))))
        except ValueError:
            raise forms.ValidationError("Choose runs of the list.") from None

    def valid_value(self, value: Any) -> bool:
        return True  # the view checks that it exists for the user


class ChosenRunsForm(forms.Form):
    """Action on the runs selected in the list. `back` is the query of the list's address."""

    ACTIONS = ("charts", "compare", "star", "unstar", "archive", "restore", "tag")
    MOST = 200

    run = RunsField(error_messages={"required": "Choose at least one run first."})
    do = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])
    tag = forms.CharField(required=False)
    query = forms.CharField(required=False, max_length=4000)

    def clean_run(self) -> list[uuid.UUID]:
        if len(self.cleaned_data["run"]) > self.MOST:
            raise forms.ValidationError(f"Choose at most {self.MOST} runs.")
        return self.cleaned_data["run"]

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("do") == "tag":
            self.cleaned_data["tag"] = _checked(annotations.clean_tags, [self.cleaned_data["tag"]])[
                0
            ]
        return self.cleaned_data

    def first_error(self) -> str:
        return next(iter(self.errors.values()))[0]

    def back(self) -> str:
        """Returns the address of the list as it was; never another site."""
        query = self.data.get("query", "")
        return reverse("runs") + (query if query.startswith("?") else "")

    def carry_out(self, user: User, chosen: Sequence[Run]) -> str:
        """Applies the action and returns the address to redirect to. Raises `PermissionDenied`
        before any change."""
        do, ids = self.cleaned_data["do"], [run.pk for run in chosen]
        if do in ("charts", "compare"):
            return f"{reverse(do)}?{urlencode([('run', run_id) for run_id in ids])}"
        if do in ("star", "unstar"):
            annotations.star(ids, user, do == "star")
            return self.back()
        for project in {run.project for run in chosen}:
            require(user, Action.OPERATE, project)
        if do == "tag":
            annotations.add_tag(ids, self.cleaned_data["tag"])
        else:
            annotations.archive(ids, do == "archive")
        return self.back()
