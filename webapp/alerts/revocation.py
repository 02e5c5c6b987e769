"""End of rules and channels of people who lost the right to them.

Evaluation checks again whether a person sees what a rule is about, so that no way of losing a right
is missed; a rule deleted here is recorded by the audit, and does not return with the right.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.dispatch import receiver

from webapp.accounts.models import User
from webapp.alerts.channels import disable
from webapp.alerts.models import AlertRule, Channel
from webapp.projects.models import Project, Workspace
from webapp.projects.permissions import Action, may
from webapp.projects.revocation import access_changed


@receiver(access_changed)
def revoke(workspace: Workspace, user_ids: Collection[int], **_: Any) -> None:
    """Deletes these people's rules about what they no longer see, and disables the channels of
    projects that they made and may no longer manage: those lead where they chose."""
    for user in User.objects.filter(pk__in=user_ids):
        _delete_rules(workspace, user)
        _disable_channels(workspace, user)


def _delete_rules(workspace: Workspace, user: User) -> None:
    rules = AlertRule.objects.filter(user=user, workspace=workspace)
    if not Workspace.objects.visible_to(user).filter(pk=workspace.pk).exists():
        rules.delete()
        return
    seen = Project.objects.visible_to(user).filter(workspace=workspace)
    rules.exclude(project=None).exclude(project__in=seen).delete()


def _disable_channels(workspace: Workspace, user: User) -> None:
    made = Channel.objects.filter(
        project__workspace=workspace, created_by=user, disabled_at=None
    ).select_related("project")
    for channel in made:
        if not may(user, Action.MANAGE_ALERTS, channel.project):
            disable(channel, f"{user}, who set it up, may no longer manage alerts")
