"""Dispatch of a run to the workers. A broker failure never fails a request: the row stays as it is
and the sweep sends again (`selectors.sweepable_runs`)."""

from __future__ import annotations

import logging
import uuid
from functools import partial

from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from engine.config import tracing
from webapp.celery import RUN_TASK, app
from webapp.experiments.models import Run

logger = logging.getLogger(__name__)


def dispatch_on_commit(run_id: uuid.UUID) -> None:
    """Sends the run to the queue once the current transaction is committed. With traces, the row
    names the current span, in which the worker that takes the run continues."""
    if span := tracing.traceparent():
        Run.objects.filter(pk=run_id).update(traceparent=span)
    transaction.on_commit(partial(dispatch, run_id))


def dispatch(run_id: uuid.UUID) -> bool:
    """Sends the run to the queue now; returns False if the broker did not accept it."""
    try:
        app.send_task(RUN_TASK, [str(run_id)], retry=False)
    except (OperationalError, OSError) as error:
        logger.warning(
            "run %s: the broker did not accept it (%s); the sweep sends it again", run_id, error
        )
        return False
    Run.objects.filter(pk=run_id).update(dispatched_at=Now())
    return True
