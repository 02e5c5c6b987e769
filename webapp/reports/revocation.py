"""Revocation of links to reports whose makers may no longer share them.

`links.maker_may_share` is checked as well at each opening (`reports.sharing`); a link revoked here
is recorded by the audit, and stays closed if the right is granted again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.dispatch import receiver

from webapp.projects.models import Workspace
from webapp.projects.revocation import access_changed
from webapp.reports.models import ReportShare
from webapp.sharing import links


@receiver(access_changed)
def revoke_links(workspace: Workspace, user_ids: Collection[int], **_: Any) -> None:
    """Revokes these people's links to reports of the workspace that they may no longer share."""
    made = ReportShare.objects.valid().filter(created_by__in=user_ids, project__workspace=workspace)
    for share in made.select_related("project", "created_by"):
        if not links.maker_may_share(share, [share.project]):
            links.revoke(share)
