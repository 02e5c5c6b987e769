"""Drafts of a run's nodes in flight, between the worker that ships the run and who watches it.

Invariants: a row exists only for a run that somebody has watched since it last began; its body is
overwritten and never part of the log. Readers set how long they watch; the worker alone writes the
body, and only meanwhile.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import msgspec
from django.utils import timezone

from engine.events.drafts import Draft
from webapp.experiments.services import announce
from webapp.telemetry.models import Drafts

WATCH = """
INSERT INTO telemetry_drafts (run_id, watched_until, version, body)
SELECT id, now() + interval '15 s', 0, ''::bytea FROM experiments_run
WHERE id = %s AND state NOT IN ('finished', 'failed', 'stopped')
ON CONFLICT (run_id) DO UPDATE SET watched_until = EXCLUDED.watched_until
RETURNING version
"""
"""Watches a run that has not ended for the next 15 s."""
NEWER = (
    "SELECT version, body FROM telemetry_drafts WHERE run_id = %s AND version > 0 AND version <> %s"
)


def is_watched(run_id: uuid.UUID) -> bool:
    """Returns whether somebody watches what the run's agents are writing."""
    return Drafts.objects.filter(pk=run_id, watched_until__gt=timezone.now()).exists()


def publish(run_id: uuid.UUID, drafts: Sequence[Draft]) -> None:
    """Replaces the drafts of a watched run and wakes its watchers."""
    body = msgspec.json.encode(drafts)
    rows = Drafts.objects.filter(pk=run_id)
    # By the clock: a run that began again must not repeat a version.
    if rows.update(body=body, version=time.time_ns()):
        announce(run_id)


def clear(run_id: uuid.UUID) -> None:
    """Replaces the drafts by none, which says that the run's engine has ended."""
    publish(run_id, [])


def forget(run_id: uuid.UUID) -> None:
    """Discards the drafts of a run that has ended, or begins again."""
    Drafts.objects.filter(pk=run_id).delete()


def of_tree(body: bytes, tree: int) -> bytes | None:
    """Returns the drafts of one tree; None if only other trees have drafts, so that a reader of
    this one does not take their absence for the end of the engine."""
    drafts = msgspec.json.decode(body, type=list[Draft])
    mine = [draft for draft in drafts if draft.tree == tree]
    return msgspec.json.encode(mine) if mine or not drafts else None
