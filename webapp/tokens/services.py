"""Creation of API tokens, each for one workspace or one project."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from webapp.accounts.models import ApiToken, Scope, User
from webapp.accounts.tokens import new_secret
from webapp.projects.models import Project, Workspace


def create_token(
    user: User, name: str, scopes: list[Scope], resource: Workspace | Project, lifetime: timedelta
) -> str:
    """Returns the secret of a new token for `resource`; it is not stored, only its digest.

    Callers have checked that the role of `user` there may grant the scopes.
    """
    secret, digests = new_secret()
    project = resource if isinstance(resource, Project) else None
    ApiToken.objects.create(
        user=user,
        name=name,
        scopes=[scope.value for scope in scopes],
        workspace=project.workspace if project else resource,
        project=project,
        expires=timezone.now() + lifetime,
        **digests,
    )
    return secret
