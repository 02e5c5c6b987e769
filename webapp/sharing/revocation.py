"""Revocation of links whose makers may no longer share what they show.

`links.maker_may_share` is checked as well at each opening, so that no way of losing a right is
missed. A link revoked here is recorded by the audit, and stays closed if the right is granted
again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.dispatch import receiver

from webapp.experiments.models import Run
from webapp.projects.models import Workspace
from webapp.projects.revocation import access_changed
from webapp.sharing import links
from webapp.sharing.comparisons import projects_of
from webapp.sharing.models import ComparisonShare, Share
from webapp.sharing.services import revoke_share


@receiver(access_changed)
def revoke_links(workspace: Workspace, user_ids: Collection[int], **_: Any) -> None:
    """Revokes these people's links to runs of the workspace that they may no longer share."""
    runs = Run.objects.filter(experiment__project__workspace=workspace)
    made = Share.objects.valid().filter(created_by__in=user_ids, run__in=runs)
    for share in made.select_related("run__experiment__project", "created_by"):
        if not links.maker_may_share(share, [share.run.project]):
            revoke_share(share)
    compared = ComparisonShare.objects.valid().filter(
        created_by__in=user_ids, runs__overlap=runs.values_list("pk")
    )
    for comparison in compared.select_related("created_by"):
        if not links.maker_may_share(comparison, projects_of(comparison)):
            links.revoke(comparison)
