"""Links by which anybody may look at one run, one tree of it, or some runs that are compared,
without an account.

Invariants: the secret of a link is never stored, only its keyed digest; a link shows its runs and
nothing beside them; it ends by itself, and at once when it is revoked (`sharing.services`).
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from webapp.experiments.models import InRunQuerySet, Run


class LinkQuerySet(models.QuerySet):
    def valid(self) -> LinkQuerySet:
        """Those that still show something."""
        return self.filter(revoked_at=None, expires__gt=Now())


class Link(models.Model):
    """What lets anybody in who has its secret (`sharing.links`)."""

    digest = models.CharField(max_length=64, unique=True)
    """HMAC-SHA256 of the secret under the server's key."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class ShareQuerySet(LinkQuerySet, InRunQuerySet):
    pass


class Share(Link):
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="shares")
    tree = models.BigIntegerField(null=True)
    """The one tree that it shows; null shows the whole run."""
    until = models.BigIntegerField(null=True)
    """Seq of the last event that it shows: frozen. Null is live."""

    objects = ShareQuerySet.as_manager()

    def __str__(self) -> str:
        what = "the whole run" if self.tree is None else f"tree {self.tree}"
        return f"{what}, {'live' if self.until is None else f'as of event {self.until}'}"


class ComparisonShare(Link):
    """A link to several runs beside one another, and to nothing else of them."""

    runs = ArrayField(models.UUIDField())
    """In their order; the first is what the others are measured against."""
    split = models.CharField(max_length=20)
    frozen = models.JSONField(null=True)
    """What it showed when it was made, which is all that it ever shows. Null is live."""

    objects = LinkQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{len(self.runs)} runs, {'live' if self.frozen is None else 'frozen'}"
