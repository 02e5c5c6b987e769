"""Form that changes the password, with or without revoking API tokens."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import ChangePasswordForm
from django import forms

_LABELS = {
    "oldpassword": "Current password",
    "password1": "New password",
    "password2": "New password (again)",
}


class PasswordForm(ChangePasswordForm):
    """Revokes API tokens together with the old password, unless the box is ticked."""

    keep_tokens = forms.BooleanField(
        required=False,
        label="Keep my API tokens",
        help_text="If unchecked, all of them are revoked. Keep them only if nobody else knows your"
        " password.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in _LABELS.items():
            self.fields[name].label = label
            self.fields[name].widget.attrs.pop("placeholder")  # it repeats the label

    def save(self) -> None:
        self.user.keeps_tokens = self.cleaned_data["keep_tokens"]
        super().save()
