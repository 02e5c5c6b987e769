"""Reads of accounts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.accounts.models import ApiToken, User


def valid_tokens(user: User) -> QuerySet[ApiToken]:
    """Tokens of `user` that still let a program in, newest first."""
    return (
        ApiToken.objects.visible_to(user)
        .valid()
        .select_related("workspace", "project")
        .order_by("-created", "-pk")
    )


def ways_in(request: HttpRequest) -> dict[str, Any]:
    """For every template: `MAIL_IS_SENT`, and the organisation's sign-in `OIDC` (name) or None."""
    return {"MAIL_IS_SENT": settings.MAIL_IS_SENT, "OIDC": settings.OIDC}
