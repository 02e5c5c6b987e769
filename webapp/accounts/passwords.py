"""A new password ends what an old one let make: API tokens and sign-in links.

As one of `AUTH_PASSWORD_VALIDATORS` it hears of every new password (`password_changed`): of the
page's, of one that was reset by mail, and of `manage.py changepassword`. Sessions end
by themselves: Django keeps a digest of the password in each.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.accounts.services import announce_access


class EndsAccess:
    """A validator that refuses no password."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Any will do: what makes a password good is not checked here."""

    def password_changed(self, password: str, user: User | None = None) -> None:
        if user is not None and user.pk is not None:
            end_access(user)

    def get_help_text(self) -> str:
        return "Another password later ends your API tokens and your other sessions."


@transaction.atomic
def end_access(user: User) -> None:
    """Revoke the user's open sign-in links and, unless `user.keeps_tokens`, their API tokens; what
    is open by them is closed."""
    now = timezone.now()
    user.sign_in_links.filter(used_at=None).update(used_at=now)
    if not user.keeps_tokens:
        user.tokens.filter(revoked_at=None).update(revoked_at=now)
    announce_access(user.pk)
