"""Operators of the installation: the people who may have alerts about its disk.

Django's flags of users grant nothing here; operators are named in the environment.
"""

from __future__ import annotations

from django.conf import settings

from webapp.accounts.models import User


def is_operator(user: User) -> bool:
    """Whether GROVE_OPERATORS names the user; unset, whether theirs is the first account."""
    if user.token is not None or not user.is_active:
        return False
    if settings.OPERATORS:
        return user.username in settings.OPERATORS
    return user.pk == User.objects.order_by("pk").values_list("pk", flat=True).first()
