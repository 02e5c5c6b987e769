"""Audit records, which database triggers write at every change of a row: one table for each model.

Invariants: a record is never changed, and removed only with its whole workspace
(`offboarding.services`); no secret, no digest, nothing that people wrote is copied into it. Of a
run's own row, the trigger tracks columns that an engine never writes, so telemetry fires none.
"""

from __future__ import annotations

from typing import Any

import pghistory
import pgtrigger
from django.db import models

from webapp.accounts.models import ApiToken
from webapp.alerts.models import AlertRule, Channel
from webapp.comments.models import Comment
from webapp.datasets.models import DatasetVersion
from webapp.experiments.models import Run, RunAction
from webapp.projects.models import Invitation, Membership, Project, Workspace
from webapp.registry.models import ModelVersion, Promotion, SecondPairOfEyes
from webapp.reports.models import ReportPage, ReportShare
from webapp.retention.models import DeletedRun, RetentionPolicy
from webapp.sharing.models import ComparisonShare, Share


def _noted(name: str, fields: list[str], *trackers: pghistory.RowEvent) -> Any:
    """Decorator of a model's proxy, which has the triggers: records `fields` as `name`."""
    newest_first = models.Index(
        fields=["-pgh_created_at", "-pgh_id"], name=f"{name[:24].lower()}_new"
    )
    return pghistory.track(
        *trackers,
        fields=fields,
        model_name=name,
        obj_field=pghistory.ObjForeignKey(related_name="+", related_query_name="+"),
        context_field=pghistory.ContextJSONField(),
        context_id_field=None,
        append_only=True,
        meta={"indexes": [newest_first]},
    )


def _created() -> pghistory.InsertEvent:
    return pghistory.InsertEvent("made")


def _deleted() -> pghistory.DeleteEvent:
    return pghistory.DeleteEvent("gone")


def _changed(*columns: str, label: str = "changed") -> pghistory.UpdateEvent:
    """Fires only for statements that set one of the columns."""
    return pghistory.UpdateEvent(
        label,
        operation=pgtrigger.UpdateOf(*columns),
        condition=pgtrigger.AnyChange(*columns),
        trigger_name=label,
    )


@_noted("WorkspaceEvent", ["name"], _created(), _changed("name"), _deleted())
class NotedWorkspace(Workspace):
    class Meta:
        proxy = True


@_noted("MembershipEvent", ["workspace", "user", "role"], _created(), _changed("role"), _deleted())
class NotedMembership(Membership):
    class Meta:
        proxy = True


@_noted(
    "InvitationEvent", ["workspace", "role", "single_use"], _created(),
    _changed("revoked_at", label="revoked"),
)  # fmt: skip
class NotedInvitation(Invitation):
    class Meta:
        proxy = True


@_noted(
    "ProjectEvent", ["workspace", "name", "visibility"], _created(), _changed("name", "visibility"),
    _deleted(),
)  # fmt: skip
class NotedProject(Project):
    class Meta:
        proxy = True


@_noted(
    "TokenEvent", ["workspace", "user", "name", "prefix", "scopes"], _created(),
    _changed("revoked_at", label="revoked"),
)  # fmt: skip
class NotedToken(ApiToken):
    class Meta:
        proxy = True


@_noted("ShareEvent", ["run", "tree", "until"], _created(), _changed("revoked_at", label="revoked"))
class NotedShare(Share):
    class Meta:
        proxy = True


@_noted("ComparisonEvent", ["runs"], _created(), _changed("revoked_at", label="revoked"))
class NotedComparisonShare(ComparisonShare):
    class Meta:
        proxy = True


@_noted("RunActionEvent", ["run", "user", "kind"], _created())
class NotedRunAction(RunAction):
    class Meta:
        proxy = True


@_noted(
    "RunMarkEvent", ["archived_at"], _changed("archived_at", label="archived"),
    _changed("tags", label="tagged"), _changed("notes", label="described"),
)  # fmt: skip
class NotedRun(Run):
    class Meta:
        proxy = True


@_noted(
    "CommentEvent", ["run", "author", "tree", "node"], _created(), _changed("text"), _deleted(),
)  # fmt: skip
class NotedComment(Comment):
    class Meta:
        proxy = True


@_noted(
    "ReportPageEvent", ["project", "title"], _created(), _changed("version"), _deleted(),
)  # fmt: skip
class NotedReportPage(ReportPage):
    class Meta:
        proxy = True


@_noted(
    "ReportShareEvent", ["project", "page"], _created(), _changed("revoked_at", label="revoked"),
)  # fmt: skip
class NotedReportShare(ReportShare):
    class Meta:
        proxy = True


@_noted("DatasetEvent", ["dataset", "number"], _created(), _deleted())
class NotedDatasetVersion(DatasetVersion):
    class Meta:
        proxy = True


@_noted(
    "ModelEvent",
    ["model", "number", "run"],
    _created(),
    _changed("notes", label="described"),
    _deleted(),
)
class NotedModelVersion(ModelVersion):
    class Meta:
        proxy = True


@_noted("PromotionEvent", ["model", "alias", "number", "state"], _created(), _changed("state"))
class NotedPromotion(Promotion):
    class Meta:
        proxy = True


@_noted("SettingEvent", ["workspace"], _created(), _deleted())
class NotedSecondPairOfEyes(SecondPairOfEyes):
    class Meta:
        proxy = True


@_noted("RunDeletionEvent", ["workspace", "name", "by_policy"], _created())
class NotedDeletedRun(DeletedRun):
    class Meta:
        proxy = True


@_noted(
    "RetentionEvent", ["workspace", "days"], _created(),
    _changed("days", "unused_versions"), _deleted(),
)  # fmt: skip
class NotedRetentionPolicy(RetentionPolicy):
    class Meta:
        proxy = True


@_noted(
    "AlertRuleEvent",
    ["workspace", "project", "user", "kind"],
    _created(),
    _changed(
        "kind", "workspace_id", "project_id", "experiment_id", "tag", "minutes", "health", "metric",
        "agent", "direction", "threshold", "points", "percent", "inbox", "mail",
    ),
    _deleted(),
)  # fmt: skip
class NotedAlertRule(AlertRule):
    class Meta:
        proxy = True


@_noted(
    "AlertChannelEvent", ["project", "kind", "name", "disabled_at"], _created(),
    _changed("disabled_at", label="switched"), _changed("nonce", label="rotated"), _deleted(),
)  # fmt: skip
class NotedChannel(Channel):
    class Meta:
        proxy = True
