"""Rollouts of another trainer, as a run that is over: created with all its events, or not at all.

Invariant: the session follows from the rollouts and the run's id, so rollouts that are sent again
change nothing, and give the same run.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from django.db import transaction

from webapp.accounts.models import User
from webapp.client.imports.rollouts import Broken, events_of, trees_of
from webapp.client.imports.whole import Target, session_of
from webapp.experiments.models import Run
from webapp.experiments.tracked_runs import LAST_SECOND, Process, Resume, attach
from webapp.projects.models import Project
from webapp.rest.problem_details import Invalid
from webapp.telemetry.ingest.external_engines import MOST_EVENTS, read_batch, store_batch


def import_rollouts(
    project: Project, user: User, rollouts: Sequence[Mapping[str, Any]], key: str, name: str
) -> Run:
    """Returns the run of these rollouts, whose fields `webapp.client.imports.rollouts` describes;
    without a `key`, its id follows from them.

    Raises:
        Invalid: one of them cannot be used. KeyRefused: the project has another run of this id.
    """
    try:
        steps = trees_of((f"rollouts.{n}", row, n + 1) for n, row in enumerate(rollouts))
    except Broken as broken:
        path = f"{broken.place}.{broken.name}" if broken.name else broken.place
        raise Invalid(path, broken.value, broken.reason) from None
    digest = hashlib.sha256(msgspec.json.encode(rollouts, order="sorted")).hexdigest()
    key = Target(id=key).key(digest)
    session = session_of(digest, key)
    events = [
        {"seq": seq, **event} for seq, event in enumerate(events_of(steps, session, time.time()), 1)
    ]
    with transaction.atomic():
        process = Process(session, "", len(events), LAST_SECOND)
        run = attach(project, user, key, Resume.NEVER, process, name=name).run
        for first in range(run.head_seq, len(events), MOST_EVENTS):
            batch = {"session": str(session), "events": events[first : first + MOST_EVENTS]}
            run = store_batch(run.pk, read_batch(msgspec.json.encode(batch)))
    return run
