"""Owners of rules and channels: a person, or a project."""

from __future__ import annotations

from typing import Any

from webapp.accounts.models import User
from webapp.alerts.models import AlertRule
from webapp.projects.models import Project

Owner = User | Project


def fields_of(owner: Owner) -> dict[str, Any]:
    """The column of a rule or channel that names its owner."""
    return {"project": owner, "user": None} if isinstance(owner, Project) else {"user": owner}


def owner_of(rule: AlertRule) -> Owner:
    """The person whose subscription it is, or the project whose rule it is."""
    return rule.user or rule.project


def lock(owner: Owner) -> None:
    """Locks the owner's row until the transaction ends, so that limits hold under concurrency."""
    # The user of a request is a proxy, whose type has no manager.
    model = Project if isinstance(owner, Project) else User
    model.objects.select_for_update(no_key=True).get(pk=owner.pk)
