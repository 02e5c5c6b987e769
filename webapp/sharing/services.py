"""Creation, lookup and revocation of share links.

Invariant: the visitor of a link is a `Guest`: no user, no session, no role.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.urls import reverse

from webapp.accounts.models import User
from webapp.accounts.services import announce_access
from webapp.experiments.models import Run
from webapp.sharing import links
from webapp.sharing.models import Share
from webapp.telemetry.models import Event
from webapp.telemetry.stream.view import View
from webapp.telemetry.stream.visitors import Visitor

_SALT = "webapp.sharing.services"


class ShareRefused(Exception):
    """Raised for what cannot be shared; the message says why."""


@dataclass(frozen=True, slots=True)
class Guest(Visitor):
    """A visitor by a share; replaces the user where the stream authenticates."""

    share: Share

    @property
    def pk(self) -> int:
        """An id that no user has: sockets are counted, and notified of changes, by share."""
        return _pseudo_user_id(self.share.pk)

    @property
    def run_id(self) -> uuid.UUID:
        return self.share.run_id

    @property
    def expires(self) -> datetime:
        return self.share.expires

    def is_admitted(self) -> bool:
        shares = Share.objects.valid().select_related("run__experiment__project", "created_by")
        share = shares.filter(pk=self.share.pk).first()
        return share is not None and links.maker_may_share(share, [share.run.project])


def create_share(
    run: Run, user: User, lifetime: timedelta, tree: int | None = None, until: int | None = None
) -> tuple[Share, str]:
    """Returns the share and the path of its link, whose secret is stored only as a digest.

    Raises:
        ShareRefused: the run has no such tree or event (yet).
    """
    if until is not None and not 0 < until <= run.head_seq:
        raise ShareRefused(f"event {until}: the run has events 1 to {run.head_seq}")
    opened = Event.objects.filter(run=run, tree=tree, kind="tree.open")
    seen = opened if until is None else opened.filter(seq__lte=until)
    if tree is not None and not seen.exists():
        raise ShareRefused(f"tree {tree}: the run has no such tree at that moment")
    shown = {"run": run, "tree": tree, "until": until}
    share, secret = links.create(Share, _SALT, user, lifetime, **shown)
    return share, reverse("shared", args=[secret])


def guest_by(secret: str) -> Guest | None:
    """The guest whom a link's secret admits; None if the link shows nothing (any more)."""
    share = links.find(Share.objects.select_related("run__experiment__project"), _SALT, secret)
    if share is None or not links.maker_may_share(share, [share.run.project]):
        return None
    return Guest(View(f"/api/v1/shared/{secret}", share.until, share.tree), share)


@transaction.atomic
def revoke_share(share: Share) -> None:
    """Revokes the link: it shows nothing any more, and the sockets that it opened are closed."""
    links.revoke(share)
    announce_access(_pseudo_user_id(share.pk))


def _pseudo_user_id(share_id: int) -> int:
    return -share_id
