"""Rules that nothing triggers: stalled runs, quotas, the disk. A worker looks at them now and then.

Invariant: one process looks at a time, and progress and alerts are written in one transaction, so
that every occasion is noticed once.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction

from webapp.alerts.evaluation import Progress, fold_level, stalled
from webapp.alerts.models import AlertRule, RuleKind, RuleState
from webapp.alerts.notices import notify
from webapp.alerts.operators import is_operator
from webapp.artifacts.selectors import bytes_of
from webapp.experiments.models import Run
from webapp.experiments.scheduling.queue import events_of
from webapp.experiments.scheduling.states import HELD
from webapp.projects.models import Project
from webapp.telemetry.models import Event

logger = logging.getLogger(__name__)

PROGRESS = (
    "step.start", "step.end", "tree.open", "tree.close", "node.open", "node.close",
    "agent.update", "eval.result", "run.resumed", "checkpoint.saved", "search.answer",
    "metric.logged",
)  # fmt: skip
"""Kinds of events that show progress; samples of the machine and log lines do not. A run of
another program has often nothing but what it logs."""
_LOCK = "levels of alert rules"


@dataclass(frozen=True, slots=True)
class Level:
    """A share of something that is limited, from 0 to 1 or above."""

    subject: str
    used: float
    title: str
    cause: str
    project: Project | None = None


@transaction.atomic
def look() -> bool:
    """Evaluates all such rules; returns False if another process is doing it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [_LOCK])
        if not cursor.fetchone()[0]:
            return False
    rules = AlertRule.objects.select_related("user", "project", "workspace")
    for rule in rules.filter(kind__in=_LOOKS).order_by("pk"):
        try:
            with transaction.atomic():
                _LOOKS[rule.kind](rule)
        except Exception:  # of one rule; the others are looked at
            logger.exception("alert rule %s was not evaluated", rule.pk)
    return True


def disk() -> Level:
    """How full the disk of the server's data is, and where."""
    usage = shutil.disk_usage(settings.GROVE_VAR)
    free = usage.free / usage.total
    return Level(
        "disk",
        1 - free,
        f"The server's disk is {100 * (1 - free):.0f} % full",
        f"{usage.free / 2**30:.1f} GiB of {usage.total / 2**30:.1f} GiB are free. Runs fail, and "
        "nothing is stored, once it is full: free space, or give it more.",
    )


def _look_at_runs(rule: AlertRule) -> None:
    runs = Run.objects.filter(
        state__in=HELD, experiment__project__workspace=rule.workspace_id
    ).select_related("experiment__project")
    if rule.project_id:
        runs = runs.filter(experiment__project=rule.project_id)
    if rule.experiment_id:
        runs = runs.filter(experiment=rule.experiment_id)
    if rule.tag:
        runs = runs.filter(tags__contains=[rule.tag])
    for run in runs.exclude(tracking__alerts_after__gte=time.time()).defer("config", "notes"):
        mark, last = _last_progress(run)
        name, minutes = str(run), rule.minutes or 0
        if occasion := stalled(minutes, name, mark, last, run.waiting_name, time.time()):
            notify(rule, occasion, run)


def _last_progress(run: Run) -> tuple[int, float]:
    """Seq and Unix seconds of the newest event that shows progress; 0 and the run's start if there
    is none, or if it was started again since."""
    newest = Event.objects.filter(run=run.pk, kind__in=PROGRESS).order_by("-seq")
    seq, at = newest.values_list("seq", "time").first() or (0, run.created)
    started = run.queued_at if run.queued_at and run.queued_at > at else at
    return seq, max(at, started, run.started_at or at).timestamp()


def _quotas(rule: AlertRule) -> Iterator[Level]:
    """The quotas in the rule's scope: files of its projects, and events of its workspace."""
    workspace = rule.workspace
    projects = [rule.project] if rule.project else list(workspace.projects.all())
    for project in projects:
        held, most = bytes_of(project), settings.ARTIFACT_QUOTA_BYTES
        yield Level(
            f"files of project {project.pk}",
            held / most,
            f"{project}: {100 * held / most:.0f} % of its files' quota is used",
            f"{held / 2**20:,.0f} MiB of {most / 2**20:,.0f} MiB. Delete what it does not need, or "
            "have the server's operator raise GROVE_QUOTA_MIB.",
            project,
        )
    stored, most = events_of(workspace.pk), settings.MOST_EVENTS
    yield Level(
        f"events of workspace {workspace.pk}",
        stored / most,
        f"{workspace}: {100 * stored / most:.0f} % of its events are used",
        f"{stored:,} of {most:,}. Delete experiments that it does not need, or have the server's "
        "operator raise GROVE_MOST_EVENTS.",
        rule.project,
    )


def _look_at_quotas(rule: AlertRule) -> None:
    for level in _quotas(rule):
        _look_at_level(rule, level)


def _look_at_disk(rule: AlertRule) -> None:
    if is_operator(rule.user):
        _look_at_level(rule, disk())


def _look_at_level(rule: AlertRule, level: Level) -> None:
    state, _ = RuleState.objects.get_or_create(rule=rule, run=None, subject=level.subject)
    percent = rule.percent or 0
    limit = 1 - percent / 100 if rule.kind == RuleKind.DISK else percent / 100
    beyond = level.used > limit if rule.kind == RuleKind.DISK else level.used >= limit
    progress, occasion = fold_level(
        level.subject,
        Progress(state.beyond, state.since, state.fired),
        beyond=beyond,
        title=level.title,
        cause=level.cause,
        now=time.time(),
    )
    state.beyond, state.since, state.fired = progress.beyond, progress.since, progress.fired
    state.save()
    if occasion:
        notify(rule, occasion, project=level.project)


_LOOKS = {
    RuleKind.RUN_STALLED: _look_at_runs,
    RuleKind.QUOTA: _look_at_quotas,
    RuleKind.DISK: _look_at_disk,
}
