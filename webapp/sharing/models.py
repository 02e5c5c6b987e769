"""Links to one run, one tree of it, or a comparison of runs, which anybody may view.

Invariants: a link requires no account; its secret is never stored, only its keyed digest; it shows
its runs and nothing else; it expires by itself, and ends at once when it is revoked
(`sharing.services`).
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from webapp.experiments.models import InRunQuerySet, Run


class LinkQuerySet(models.QuerySet):
    def valid(self) -> LinkQuerySet:
        """Links that still show something."""
        return self.filter(revoked_at=None, expires__gt=Now())


class Link(models.Model):
    """Base of links: admits anybody who has the secret (`sharing.links`)."""

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
    """A link to a comparison of several runs, and to nothing else of them."""

    runs = ArrayField(models.UUIDField())
    """In their order; the first is the baseline of the comparison."""
    split = models.CharField(max_length=20)
    frozen = models.JSONField(null=True)
    """What it showed at its creation, which is all that it ever shows. Null is live."""

    objects = LinkQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{len(self.runs)} runs, {'live' if self.frozen is None else 'frozen'}"
