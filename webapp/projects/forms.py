"""Forms of a workspace's page. `permissions` decides which roles a user may grant."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.names import NameField
from webapp.projects.models import Role, Visibility


class NameForm(forms.Form):
    name = NameField(max_length=100)


class ProjectForm(NameForm):
    visibility = forms.ChoiceField(choices=Visibility.choices)


class VisibilityForm(forms.Form):
    visibility = forms.ChoiceField(choices=Visibility.choices)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)


class InvitationForm(forms.Form):
    role = forms.ChoiceField()
    single_use = forms.BooleanField(required=False, initial=True)

    def __init__(self, givable: list[Role], *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        # Owners are appointed on the page, where the member is visible, not by a link.
        self.fields["role"].choices = [
            (role.value, role.label) for role in reversed(givable) if role is not Role.OWNER
        ]
