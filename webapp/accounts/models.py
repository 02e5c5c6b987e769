"""Users, their one-time sign-in links, and the tokens by which programs act for them.

Invariants: the secret of a link or token is never stored, only its digest; a link works once; a
token never allows more than its user's role does (`projects.permissions`).
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from webapp.names import NameColumn


class User(AbstractUser):
    """A user who signs in. Their rights follow from their memberships, not from flags."""

    token: ApiToken | None = None
    """The token through which this user acts now, if any: it narrows what they see and may do."""
    keeps_tokens = False
    """Whether API tokens survive the password that is being set (`accounts.passwords`)."""


class SignInLink(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    digest = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class Scope(models.TextChoices):
    """What a token allows."""

    RUNS_READ = "runs:read", "read runs, models and datasets"
    RUNS_WRITE = "runs:write", "start, stop and resume runs, and read them"
    TELEMETRY_WRITE = "telemetry:write", "send events of runs"
    DATASETS_WRITE = "datasets:write", "add datasets"
    REGISTRY_WRITE = "registry:write", "add models"
    REGISTRY_PROMOTE = "registry:promote", "promote models"
    ADMIN = "admin", "all that your role allows"


class ApiTokenQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> ApiTokenQuerySet:
        """The user's own; a token sees no tokens."""
        return self.filter(user=user.pk) if user.is_active and not user.token else self.none()

    def valid(self) -> ApiTokenQuerySet:
        """Tokens that are neither revoked nor expired, of active users."""
        return self.filter(revoked_at=None, expires__gt=Now(), user__is_active=True)


class ApiToken(models.Model):
    """A program's key: it acts for `user`, in one workspace or one project of it."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = NameColumn(max_length=100)
    prefix = models.CharField(max_length=16)
    """The beginning of the secret, by which people distinguish tokens."""
    digest = models.CharField(max_length=64, unique=True)
    """HMAC-SHA256 of the secret under the server's key."""
    scopes = ArrayField(models.CharField(max_length=20, choices=Scope.choices))
    workspace = models.ForeignKey(
        "projects.Workspace", on_delete=models.CASCADE, related_name="tokens"
    )
    project = models.ForeignKey(
        "projects.Project", on_delete=models.CASCADE, null=True, related_name="tokens"
    )
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    last_used = models.DateTimeField(null=True)
    """To the minute."""
    revoked_at = models.DateTimeField(null=True)

    objects = ApiTokenQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
