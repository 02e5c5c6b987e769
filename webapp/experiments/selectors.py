"""Reads of runs. What a person sees starts with `visible_to`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.shortcuts import get_object_or_404

from engine.events import RunState
from webapp.accounts.models import User
from webapp.experiments.leases import unheld
from webapp.experiments.models import Run
from webapp.experiments.states import HELD

RESEND_AFTER = timedelta(seconds=5)


def visible_runs(user: User) -> QuerySet[Run]:
    """Runs that `user` may see, newest first, with what a list shows of each."""
    return (
        Run.objects.visible_to(user)
        .select_related("experiment__project__workspace", "created_by")
        .order_by("-created", "-id")
    )


def sweepable_runs() -> list[uuid.UUID]:
    """Runs that no worker holds although one should, and of which none was told lately.

    The sweep sends these to the queue again: a queued run whose message was lost, and a run
    whose worker died or gave it back.
    """
    untold = Q(dispatched_at=None) | Q(dispatched_at__lt=Now() - RESEND_AFTER)
    states = {RunState.QUEUED, *HELD}
    waiting = Run.objects.filter(untold, unheld(), state__in=states, outside=False)
    return list(waiting.order_by("queued_at").values_list("pk", flat=True))


def visible_run(user: User, run_id: uuid.UUID) -> Run:
    """The run, or `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_runs(user), pk=run_id)


def runs_by_id(user: User, run_ids: Sequence[uuid.UUID]) -> list[Run]:
    """Those of the runs that `user` may see, in the order of the ids."""
    found = {run.pk: run for run in visible_runs(user).filter(pk__in=run_ids)}
    return [found[run_id] for run_id in run_ids if run_id in found]
