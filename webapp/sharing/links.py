"""Operations common to all kinds of links: a secret that is shown once, and an end.

Invariants: the secret is stored nowhere, only its keyed digest, under a salt for each kind of link;
a link shows nothing that its maker may no longer share (`maker_may_share`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import TypeVar

from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.accounts.models import User
from webapp.projects.models import Project
from webapp.projects.permissions import Action, may
from webapp.sharing.models import Link, LinkQuerySet

AnyLink = TypeVar("AnyLink", bound=Link)


def create(
    kind: type[AnyLink], salt: str, user: User, lifetime: timedelta, **shown: object
) -> tuple[AnyLink, str]:
    """Returns a link to what `shown` describes, and its secret."""
    secret = secrets.token_urlsafe(32)
    made = kind.objects.create(
        digest=_digest(salt, secret),
        created_by=user,
        expires=timezone.now() + lifetime,
        **shown,
    )
    return made, secret


def find(links: LinkQuerySet, salt: str, secret: str) -> Link | None:
    """The link of the secret; None if it shows nothing (any more)."""
    candidates = links.valid().select_related("created_by")
    return candidates.filter(digest=_digest(salt, secret)).first()


def maker_may_share(link: Link, projects: Iterable[Project]) -> bool:
    """Whether the link's maker may still share what is in each of the projects."""
    maker = link.created_by
    return maker is not None and all(may(maker, Action.SHARE, one) for one in set(projects))


def revoke(link: Link) -> None:
    """Revokes the link: it shows nothing any more."""
    kind = type(link)
    kind.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now())


def _digest(salt: str, secret: str) -> str:
    return salted_hmac(salt, secret, algorithm="sha256").hexdigest()
