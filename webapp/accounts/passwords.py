"""Revocation at a new password: of API tokens and sign-in links created under the old one.

As one of `AUTH_PASSWORD_VALIDATORS` it is called at every new password (`password_changed`): from
the page, from a reset by mail, and from `manage.py changepassword`. Sessions end by themselves:
Django stores a digest of the password in each.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.accounts.services import announce_access


class AccessRevokingValidator:
    """A validator that refuses no password."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accepts any password: its quality is not checked here."""

    def password_changed(self, password: str, user: User | None = None) -> None:
        if user is not None and user.pk is not None:
            revoke_access(user)

    def get_help_text(self) -> str:
        return "A later change of password revokes your API tokens and ends your other sessions."


@transaction.atomic
def revoke_access(user: User) -> None:
    """Revokes the user's open sign-in links and, unless `user.keeps_tokens`, their API tokens;
    closes the connections that these opened."""
    now = timezone.now()
    user.sign_in_links.filter(used_at=None).update(used_at=now)
    if not user.keeps_tokens:
        user.tokens.filter(revoked_at=None).update(revoked_at=now)
    announce_access(user.pk)
