"""Reads of accounts."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.accounts.models import ApiToken, User


def valid_tokens(user: User) -> QuerySet[ApiToken]:
    """Tokens of `user` that still let a program in, newest first."""
    return (
        ApiToken.objects.visible_to(user)
        .valid()
        .select_related("workspace", "project")
        .order_by("-created", "-pk")
    )
