"""Queries of runs. Queries for a person start with `visible_to`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.core.exceptions import BadRequest
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.shortcuts import get_object_or_404

from engine.events.vocabulary import RunState
from webapp.accounts.models import User
from webapp.experiments.models import Run
from webapp.experiments.scheduling.leases import unheld
from webapp.experiments.scheduling.states import HELD

RESEND_AFTER = timedelta(seconds=5)
TOO_BIG_FOR_A_LIST = ("config", "experiment__config", "notes")


def visible_runs(user: User) -> QuerySet[Run]:
    """Returns the runs that `user` may see, newest first, with the columns of a list."""
    return (
        Run.objects.visible_to(user)
        .select_related("experiment__project__workspace", "created_by", "parent__experiment")
        .order_by("-created", "-id")
    )


def sweepable_runs(room: int | None = None) -> list[uuid.UUID]:
    """Returns the runs that no worker holds although one should, without a recent message.

    The sweep sends these to the queue again: every run whose worker died or released it, and `room`
    of the queued ones, which suffices: on a message for any of them a worker takes the next run
    (`queue.take`).
    """
    not_dispatched = Q(dispatched_at=None) | Q(dispatched_at__lt=Now() - RESEND_AFTER)
    due = Run.objects.filter(not_dispatched, unheld(), outside=False)
    interrupted = due.filter(state__in=HELD).values_list("pk", flat=True)
    queued = due.filter(state=RunState.QUEUED).order_by("queued_at").values_list("pk", flat=True)
    return [*interrupted, *queued[:room]]


def visible_run(user: User, run_id: uuid.UUID) -> Run:
    """Returns the run. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_runs(user), pk=run_id)


def compared_runs(user: User, ids: Sequence[str], most: int = 8) -> list[Run]:
    """Returns the runs with these ids, in their order, each once.

    Raises `Http404` if one does not exist for `user`, `BadRequest` if an id is no UUID, or if they
    are too many.
    """
    chosen = list(dict.fromkeys(filter(None, ids)))
    if len(chosen) > most:
        raise BadRequest(f"run: compare {most} runs at most, not {len(chosen)}")
    try:
        return [visible_run(user, uuid.UUID(one)) for one in chosen]
    except ValueError:
        raise BadRequest("run: give ids of runs") from None


def comparable_runs(user: User, without: Sequence[Run], most: int = 100) -> list[Run]:
    """Returns the newest runs that may be compared with these."""
    runs = visible_runs(user).that_train().defer(*TOO_BIG_FOR_A_LIST)
    return list(runs.exclude(pk__in=[run.pk for run in without])[:most])


def runs_by_id(user: User, run_ids: Sequence[uuid.UUID]) -> list[Run]:
    """Returns those of the runs that `user` may see, in the order of the ids."""
    by_id = {run.pk: run for run in visible_runs(user).filter(pk__in=run_ids)}
    return [by_id[run_id] for run_id in run_ids if run_id in by_id]
