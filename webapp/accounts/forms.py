"""Form of a new password, with or without revoking API tokens."""

from __future__ import annotations

from allauth.account.forms import ChangePasswordForm
from django import forms


class PasswordForm(ChangePasswordForm):
    """Revokes API tokens together with the old password, unless the box is ticked."""

    keep_tokens = forms.BooleanField(
        required=False,
        label="Keep my API tokens",
        help_text="Otherwise they end now. Do not keep them if somebody may know your password.",
    )

    def save(self) -> None:
        self.user.keeps_tokens = self.cleaned_data["keep_tokens"]
        super().save()
