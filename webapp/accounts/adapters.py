"""Adapters of allauth: what is encrypted, what signing out ends; sign-up is `projects.sign_up`.

Invariants: the secrets of authenticator apps are stored encrypted under the server's key; sockets
of a session that ends are closed at once.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.stages import EmailVerificationStage
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from engine.config.names import name_fault, shown_name
from webapp.accounts.models import User
from webapp.accounts.services import announce_access


class AccountAdapter(DefaultAccountAdapter):
    """Accounts with a password."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """For nobody: `projects.sign_up` admits users by invitation."""
        return False

    def logout(self, request: HttpRequest) -> None:
        """Ends the session, then has its sockets checked."""
        user_id = request.user.pk
        super().logout(request)
        announce_access(user_id)

    def clean_username(self, username: str, shallow: bool = False) -> str:
        """Refuses names that show nothing, which letters without a glyph can make."""
        if fault := name_fault(username):
            raise ValidationError(f"“{shown_name(username)}”: {fault}.")
        return super().clean_username(username, shallow)

    @transaction.atomic
    def set_password(self, user: User, password: str) -> None:
        """Ends all other sessions of the user together with the old password, and their API tokens
        (`accounts.passwords`)."""
        super().set_password(user, password)
        announce_access(user.pk)

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Suppresses the messages of signing in and out, which the user sees anyway."""
        if level != messages.SUCCESS or "logged_" not in str(args):
            super().add_message(request, level, *args, **kwargs)

    def get_login_stages(self) -> list[str]:
        return [
            "webapp.accounts.adapters.OptionalVerificationStage"
            if "EmailVerification" in path
            else path
            for path in super().get_login_stages()
        ]


class OptionalVerificationStage(EmailVerificationStage):
    """Requires a verified address only of accounts that have one to verify: those created before
    mail was configured would be locked out."""

    def handle(self) -> tuple[Any, bool]:
        if not self.login.user.emailaddress_set.exists():
            return None, True
        return super().handle()


class SecondFactorAdapter(DefaultMFAAdapter):
    """Authenticator apps, recovery codes, passkeys."""

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _cipher().decrypt(encrypted_text.encode()).decode()


def _cipher() -> Fernet:
    key = hashlib.sha256(b"webapp.accounts.adapters" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


class OrganisationAdapter(DefaultSocialAccountAdapter):
    """Accounts of an OpenID provider, which decides whom to admit."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True
