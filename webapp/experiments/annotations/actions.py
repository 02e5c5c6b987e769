"""Activity of a run: who did what, and when. Invariant: an action is recorded in the transaction
that does it, and never changed afterwards."""

from __future__ import annotations

from webapp.accounts.models import User
from webapp.experiments.models import Run, RunAction

NEWEST = 50


def note_action(run: Run, user: User | None, kind: RunAction.Kind, detail: str = "") -> None:
    """Records an action; an action without a user is automatic, and only in the log."""
    if user is not None:
        RunAction.objects.create(run=run, user=user, kind=kind, detail=detail)


def actions_of(run: Run) -> list[RunAction]:
    """Returns the run's actions, newest first."""
    return list(run.actions.select_related("user").order_by("-pk")[:NEWEST])
