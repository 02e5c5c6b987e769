"""How long a workspace keeps runs that have ended: off, or a number of days.

Invariants: it deletes a run only `NOTICE` after its people were notified of it, and only if it is
still due then; what is kept whatever its age is counted by reason (`Kept`). One worker applies one
workspace's policy at a time, once a day.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from webapp.experiments.models import Run, Star
from webapp.experiments.scheduling.states import ENDED
from webapp.projects.models import Workspace
from webapp.registry.models import Evaluation, ModelVersion, PromotionState
from webapp.retention.errors import DeletionRefused
from webapp.retention.models import PlannedDeletion, RetentionPolicy
from webapp.retention.notices import announce_deletions
from webapp.retention.plan import NEEDS_ORIGIN
from webapp.retention.services import delete_run

logger = logging.getLogger(__name__)

NOTICE = timedelta(days=7)
"""Between the notice in the inbox and the deletion."""
SHORTEST, LONGEST = 7, 3650
"""Days that a policy may keep runs."""
KEEP_TAG = "keep"
"""Runs with this tag are kept."""
EVERY = timedelta(days=1)


KEPT = (
    "starred",
    f"tagged {KEEP_TAG}",
    "source of a model version",
    "evaluation of a model version",
    "origin of a fork that may still start",
)
"""Why a run is kept whatever its age; of several the first one counts."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a policy does with the runs of its workspace."""

    due: int
    """Old enough now, or within the time of notice, and not kept."""
    kept: dict[str, int]
    """As old, and kept: number by reason; each run counts for its first reason."""


def policy_of(workspace: Workspace) -> RetentionPolicy | None:
    return RetentionPolicy.objects.filter(workspace=workspace).first()


@transaction.atomic
def change_policy(
    workspace: Workspace, days: int | None, unused_versions: bool = False
) -> RetentionPolicy | None:
    """Keeps runs for `days` after their end, from `SHORTEST` to `LONGEST`; None for good. With
    more days than before, what was announced is announced again; with fewer, no run is deleted
    earlier than its notice said."""
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    old = policy_of(workspace)
    if days is None:
        RetentionPolicy.objects.filter(workspace=workspace).delete()
        planned_in(workspace).delete()
        return None
    values = {"days": days, "unused_versions": unused_versions, "checked_at": None}
    if old is not None and (old.days, old.unused_versions) == (days, unused_versions):
        return old
    if old is not None and days > old.days:
        planned_in(workspace).delete()
    return RetentionPolicy.objects.update_or_create(workspace=workspace, defaults=values)[0]


def forecast(workspace: Workspace, days: int, unused_versions: bool) -> Forecast:
    """What a policy of these values does, as of now."""
    reasons = Counter(
        ended_before(workspace, _due_within_notice(days))
        .annotate(kept=_reason(unused_versions))
        .values_list("kept", flat=True)
    )
    due = reasons.pop("", 0)
    return Forecast(due, {reason: reasons[reason] for reason in KEPT if reasons[reason]})


def planned_in(workspace: Workspace) -> QuerySet[PlannedDeletion]:
    """The announced deletions of the workspace, the next one first."""
    planned = PlannedDeletion.objects.filter(run__experiment__project__workspace=workspace)
    return planned.order_by("announced_at", "pk")


def apply_next(now: datetime | None = None) -> bool:
    """Applies the policy that is due; False if none is."""
    now = now or timezone.now()
    with transaction.atomic():
        waiting = RetentionPolicy.objects.select_for_update(skip_locked=True, of=("self",))
        due = Q(checked_at=None) | Q(checked_at__lte=now - EVERY)
        policy = waiting.filter(due).select_related("workspace").order_by("pk").first()
        if policy is None:
            return False
        RetentionPolicy.objects.filter(pk=policy.pk).update(checked_at=now)
    apply(policy, now)
    return True


def apply(policy: RetentionPolicy, now: datetime) -> int:
    """Deletes what is due and was announced in time, and announces what is due next; returns the
    number of deleted runs."""
    workspace, old = policy.workspace, now - timedelta(days=policy.days)
    runs = ended_before(workspace, old + NOTICE).annotate(kept=_reason(policy.unused_versions))
    due = set(runs.filter(kept="").values_list("pk", flat=True))
    planned_in(workspace).exclude(run__in=due).delete()  # starred, resumed or registered since
    ripe = planned_in(workspace).filter(announced_at__lte=now - NOTICE)
    deletable = list(ripe.filter(run__in=ended_before(workspace, old)))
    deleted = sum(_delete(planned, policy.pk, now) for planned in deletable)
    with transaction.atomic():
        Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
        known = planned_in(workspace).values("run")
        fresh = list(
            Run.objects.filter(pk__in=due).exclude(pk__in=known).select_related(
                "experiment__project"
            )
        )  # fmt: skip
        made = [PlannedDeletion(run=run) for run in fresh]
        PlannedDeletion.objects.bulk_create(made, ignore_conflicts=True)
        announce_deletions(workspace, fresh, now + NOTICE)
    return deleted


def _delete(planned: PlannedDeletion, policy_id: int, now: datetime) -> bool:
    """Deletes the run if it is due at this moment: others before it may have taken hours, in which
    somebody starred it, or changed the policy."""
    try:
        with transaction.atomic():
            if not _is_due(planned, policy_id, now):
                return False
            run = Run.objects.select_related("experiment__project").get(pk=planned.run_id)
            delete_run(run, by_policy=True)
    except (DeletionRefused, Run.DoesNotExist) as error:
        logger.info("run %s is kept: %s", planned.run_id, error)
        return False
    except IntegrityError:
        logger.exception("run %s is kept", planned.run_id)  # and the next ones have their turn
        return False
    return True


def _is_due(planned: PlannedDeletion, policy_id: int, now: datetime) -> bool:
    """Whether the policy as it is now deletes the run; it does not change in this transaction."""
    policies = RetentionPolicy.objects.select_for_update(of=("self",)).select_related("workspace")
    policy = policies.filter(pk=policy_id).first()
    if policy is None or not PlannedDeletion.objects.filter(pk=planned.pk).exists():
        return False
    old = ended_before(policy.workspace, now - timedelta(days=policy.days))
    return (
        old.annotate(kept=_reason(policy.unused_versions)).filter(pk=planned.pk, kept="").exists()
    )


def ended_before(workspace: Workspace, moment: datetime) -> QuerySet[Run]:
    """The runs of the workspace that ended until then."""
    runs = Run.objects.filter(experiment__project__workspace=workspace, state__in=ENDED)
    return runs.annotate(ended=Coalesce("finished_at", "created")).filter(ended__lte=moment)


def _due_within_notice(days: int) -> datetime:
    return timezone.now() - timedelta(days=days) + NOTICE


def _reason(unused_versions: bool) -> Case:
    """Why the run is kept, one of `KEPT`; empty if it is not."""
    versions = ModelVersion.objects.filter(run=OuterRef("pk"))
    forks = Run.objects.filter(NEEDS_ORIGIN, parent=OuterRef("pk"))
    conditions = (
        Exists(Star.objects.filter(run=OuterRef("pk"))),
        Q(tags__contains=[KEEP_TAG]),
        Exists(versions.filter(_IN_USE) if unused_versions else versions),
        Exists(Evaluation.objects.filter(run=OuterRef("pk"))),
        Exists(forks),
    )
    cases = [When(one, then=Value(name)) for name, one in zip(KEPT, conditions, strict=True)]
    return Case(*cases, default=Value(""))


_IN_USE = (
    Q(aliases__isnull=False)
    | Q(children__isnull=False)
    | Q(uses__isnull=False)
    | Q(evaluations__isnull=False)
    | Q(promotions__state=PromotionState.WAITING)
)
