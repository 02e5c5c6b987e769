"""Reads of accounts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.accounts.models import ApiToken, User


def valid_tokens(user: User) -> QuerySet[ApiToken]:
    """Valid tokens of `user`, newest first."""
    return (
        ApiToken.objects.visible_to(user)
        .valid()
        .select_related("workspace", "project")
        .order_by("-created", "-pk")
    )


def sign_in_options(request: HttpRequest) -> dict[str, Any]:
    """Context of every template: `MAIL_IS_SENT`, and `OIDC` (name of the provider) or None."""
    return {"MAIL_IS_SENT": settings.MAIL_IS_SENT, "OIDC": settings.OIDC}
