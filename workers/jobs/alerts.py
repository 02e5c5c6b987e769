"""Threads that send the notices of alerts, and look at what nothing triggers: stalled runs, quotas
and the disk.

The rows of the database are the queue: a notice that a killed worker had taken is sent by another.
"""

from __future__ import annotations

from webapp.alerts.deliveries import send_next
from webapp.alerts.levels import look
from workers.jobs.job_thread import JobThread


class AlertDeliveryJob(JobThread):
    def do_one(self) -> bool:
        return send_next()


class AlertLevelJob(JobThread):
    poll_seconds = 30.0

    def do_one(self) -> bool:
        look()
        return False
