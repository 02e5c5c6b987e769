"""Who did what to a run, and when. Invariant: an action is noted in the transaction that does it,
and never changed afterwards."""

from __future__ import annotations

from webapp.accounts.models import User
from webapp.experiments.models import Run, RunAction

NEWEST = 50


def note_action(run: Run, user: User | None, kind: RunAction.Kind, detail: str = "") -> None:
    """Note it; what the machine does by itself has no user, and stands in the log alone."""
    if user is not None:
        RunAction.objects.create(run=run, user=user, kind=kind, detail=detail)


def actions_of(run: Run) -> list[RunAction]:
    """The newest first."""
    return list(run.actions.select_related("user").order_by("-pk")[:NEWEST])
