"""Celery app that web and workers share: JSON messages, one at a time, late acks.

The queue is never the truth. A message says only "look at this run"; the run's row (lease, fencing
token) says what to do, so a lost or duplicated message does no harm.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")

from django.conf import settings

from webapp import folder_queue

RUN_TASK = "workers.run"

# Redis redelivers a message that nobody acknowledged for this long. Shorter than a run on purpose:
# the second delivery finds the lease taken, and a dead worker's run is detected sooner.
_REDIS_OPTIONS = {
    "visibility_timeout": 60,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_connect_timeout": 3,
    "socket_timeout": 30,
}


def _transport_options(url: str) -> dict:
    if url.startswith("filesystem"):
        queue = settings.BROKER_DIR / "queue"
        queue.mkdir(parents=True, exist_ok=True)
        folders = {"data_folder_in": str(queue), "data_folder_out": str(queue)}
        return {**folders, "polling_interval": 0.2}
    return _REDIS_OPTIONS if url.startswith(("redis", "sentinel")) else {}


folder_queue.register()
app = Celery("grove")
app.conf.update(
    broker_url=settings.BROKER_URL,
    broker_transport_options=_transport_options(settings.BROKER_URL),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # by default a worker ends after an outage of 50 minutes
    broker_connection_timeout=3,
    accept_content=["json"],
    task_serializer="json",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    task_default_queue="grove",
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
)
