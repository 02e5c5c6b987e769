"""Notices of an occasion: the alert, inbox notices and pending deliveries, in one transaction.

Invariants: an occasion of a rule is recorded once, however often it is evaluated, and one person
has one inbox notice of one thing that happened, however many rules saw it; nobody is notified of
what they may not see, nor of a run that they muted.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import User
from webapp.alerts.evaluation import Occasion
from webapp.alerts.models import (
    Alert,
    AlertRule,
    Channel,
    Delivery,
    Mute,
    Preferences,
    RuleKind,
    Way,
)
from webapp.comments.models import Notice, Reason
from webapp.experiments.models import Experiment, Run
from webapp.projects.models import Project, Workspace

LIFETIME = timedelta(hours=24)
"""How long a delivery is retried."""
_LATEST = datetime(9000, 1, 1, tzinfo=UTC).timestamp()


def rules_about(run: Run, *kinds: RuleKind) -> QuerySet[AlertRule]:
    """Rules of these kinds whose scope and filters the run meets; one query, because every
    batch of events runs it."""
    own = Experiment.objects.filter(pk=run.experiment_id)
    return (
        AlertRule.objects.filter(
            Q(project=None) | Q(project__in=own.values("project")),
            workspace__in=own.values("project__workspace"),
            kind__in=kinds,
        )
        .filter(Q(experiment=None) | Q(experiment=run.experiment_id))
        .filter(Q(tag="") | Q(tag__in=run.tags))
        .select_related("user", "project", "workspace")
        .order_by("pk")
    )


def notify(
    rule: AlertRule, occasion: Occasion, run: Run | None = None, project: Project | None = None
) -> Alert | None:
    """Records the occasion and writes its notices; None if that was done before, or if the rule's
    owner may not see it, or muted the run."""
    project = run.experiment.project if run else project or rule.project
    if rule.user is not None and not _hears(rule.user, rule, run, project):
        return None
    alert, is_new = Alert.objects.get_or_create(
        key=f"{rule.pk}:{run.pk if run else ''}:{occasion.key}"[:400],
        defaults=_content(occasion, run, project)
        | {"kind": rule.kind, "rule": rule, "user": rule.user},
    )
    if not is_new:
        return None
    if rule.inbox:
        members = members_of(project) if project and rule.user is None else []
        put_into_inbox(
            [rule.user] if rule.user else members, alert, _inbox_key(rule, occasion, run)
        )
    if rule.mail and rule.user:
        deliver(alert, Way.MAIL, user=rule.user)
    for channel in rule.channels.filter(disabled_at=None):
        deliver(alert, Way(channel.kind), user=rule.user, channel=channel)
    return alert


def notify_own_failure(run: Run, occasion: Occasion) -> None:
    """The inbox notice that everybody has of their own failed runs, unless they declined it."""
    user = run.created_by
    if Preferences.objects.filter(user=user, own_failures=False).exists():
        return
    if not _hears(user, None, run, run.experiment.project):
        return
    content = _content(occasion, run, run.experiment.project)
    put_into_inbox([user], Alert(kind=RuleKind.RUN_FAILED, **content), f"{run.pk}:{occasion.key}")


def put_into_inbox(people: list[User], alert: Alert, key: str) -> None:
    """One unread notice for each of the people who has none with this key and did not mute the
    run."""
    muted = set(Mute.objects.filter(run=alert.run_id).values_list("user", flat=True))
    Notice.objects.bulk_create(
        [
            Notice(
                user=person,
                reason=Reason.ALERT,
                key=key[:400],
                project_id=alert.project_id,
                run_id=alert.run_id,
                title=alert.title,
                text=alert.cause,
                path=alert.path,
                at=alert.since,
            )
            for person in people
            if alert.run_id is None or person.pk not in muted
        ],
        ignore_conflicts=True,
    )


def deliver(alert: Alert, way: Way, user: User | None, channel: Channel | None = None) -> Delivery:
    """Writes a delivery that is due now."""
    now = timezone.now()
    return Delivery.objects.create(
        alert=alert, way=way, user=user, channel=channel, due_at=now, deadline=now + LIFETIME
    )


def members_of(project: Project) -> list[User]:
    """The people who see the project."""
    members = User.objects.filter(is_active=True, memberships__workspace=project.workspace_id)
    own = Project.objects.filter(pk=project.pk)
    return [one for one in members if own.visible_to(one).exists()]


def moment(seconds: float) -> datetime:
    """Unix seconds as an aware time; what no clock shows becomes now."""
    return datetime.fromtimestamp(seconds, UTC) if 0 <= seconds < _LATEST else timezone.now()


def _content(occasion: Occasion, run: Run | None, project: Project | None) -> dict:
    path = reverse("run", args=[run.pk]) if run else reverse("notifications")
    if run is None and project is not None:
        path = reverse("project-alerts", args=[project.pk])
    return {
        "project": project,
        "run": run,
        "title": " ".join(_stored(occasion.title).split())[:300],
        "cause": _stored(occasion.cause),
        "since": moment(occasion.since),
        "path": path,
    }


def _stored(text: str) -> str:
    # A text column cannot hold NUL.
    return text.replace("\0", "\ufffd")


def _inbox_key(rule: AlertRule, occasion: Occasion, run: Run | None) -> str:
    """The same for all rules that see the same thing; thresholds differ by rule."""
    if run and rule.kind in (RuleKind.RUN_ENDED, RuleKind.RUN_FAILED, RuleKind.HEALTH):
        return f"{run.pk}:{occasion.key}"
    return f"{rule.pk}:{run.pk if run else ''}:{occasion.key}"


def _hears(user: User, rule: AlertRule | None, run: Run | None, project: Project | None) -> bool:
    if not user.is_active:
        return False
    if run is not None:
        muted = Mute.objects.filter(user=user, run=run).exists()
        return not muted and Run.objects.visible_to(user).filter(pk=run.pk).exists()
    if project is not None:
        return Project.objects.visible_to(user).filter(pk=project.pk).exists()
    if rule is not None and rule.workspace_id is not None:
        return Workspace.objects.visible_to(user).filter(pk=rule.workspace_id).exists()
    return True
