"""Form of a new API token."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.accounts.models import Scope, User
from webapp.names import NameField
from webapp.projects.models import Project, Workspace
from webapp.projects.permissions import grantable_scopes, role_in, useful_scopes

_DAYS = ((7, "a week"), (30, "30 days"), (90, "90 days"), (365, "a year"))


class TokenForm(forms.Form):
    """`cleaned_data["resource"]` is the Workspace or Project that the token is bound to."""

    name = NameField(max_length=100)
    resource = forms.ChoiceField()
    scopes = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, initial=[Scope.RUNS_READ]
    )
    days = forms.TypedChoiceField(choices=_DAYS, coerce=int, initial=30)

    def __init__(
        self,
        user: User,
        workspaces: list[Workspace],
        projects: list[Project],
        *args: Any,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self._user = user
        self.fields["scopes"].choices = [(one.value, one.label) for one in useful_scopes()]
        self._resources: dict[str, Workspace | Project] = {
            f"workspace-{one.pk}": one for one in workspaces
        }
        self._resources |= {f"project-{one.pk}": one for one in projects}
        self.fields["resource"].choices = [
            ("Workspaces", [(f"workspace-{one.pk}", str(one)) for one in workspaces]),
            ("Projects", [(f"project-{one.pk}", f"{one} in {one.workspace}") for one in projects]),
        ]

    def clean_resource(self) -> Workspace | Project:
        return self._resources[self.cleaned_data["resource"]]

    def clean(self) -> dict[str, Any]:
        """Rejects scopes that the user's own role does not allow."""
        super().clean()
        given = self.cleaned_data
        if {"resource", "scopes"} <= given.keys():
            resource = given["resource"]
            role = role_in(
                self._user, resource.workspace if isinstance(resource, Project) else resource
            )
            beyond = set(given["scopes"]) - set(grantable_scopes(role) if role else ())
            if beyond:
                self.add_error(
                    "scopes", f"Your role there does not allow {', '.join(sorted(beyond))}."
                )
        return given
