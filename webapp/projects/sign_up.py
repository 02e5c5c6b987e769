"""Sign-up by an invitation: who may create an account, and of which workspace it is a member.

Invariant: an account is created by a valid invitation or by the organisation's own sign-in, never
by a stranger.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpRequest

from webapp.accounts.adapters import AccountAdapter
from webapp.accounts.models import User
from webapp.http.audit_context import note_user
from webapp.projects.membership import InvitationRefused, accept_invitation, find_invitation

INVITED_BY = "invitation"
"""Key of the session that stores the token of the invitation that the user follows."""


class InvitedAccountAdapter(AccountAdapter):
    """Accounts with a password, created by invitation."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Only for users who follow a valid invitation."""
        try:
            find_invitation(request.session.get(INVITED_BY, ""))
        except InvitationRefused:
            return False
        return True

    @transaction.atomic
    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Saves the account and makes it a member of the workspace that it was invited to."""
        made = super().save_user(request, user, form, commit)
        if commit:
            note_user(made.pk)
            accept_invitation(request.session.pop(INVITED_BY), made)
        return made
