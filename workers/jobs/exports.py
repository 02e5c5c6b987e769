"""Threads that write the requested exports and remove expired ones."""

from __future__ import annotations

from webapp.exports import services
from webapp.exports.making import make
from workers.jobs.job_thread import JobThread
from workers.runs.active_runs import closing


class ExportJob(JobThread):
    def do_one(self) -> bool:
        return write_one()


class ExportCleanupJob(JobThread):
    poll_seconds = 10.0

    def do_one(self) -> bool:
        return clean_up()


def clean_up() -> bool:
    """Fails exports that passed their deadline; removes expired ones, and files without a row.
    Returns False: nothing is left."""
    services.fail_late()
    services.remove_expired()
    services.remove_strays()
    return False


def write_one() -> bool:
    """Writes the export that has been queued longest; returns False if there is none."""
    export = services.take()
    if export is not None:
        make(export, closing)
    return export is not None
