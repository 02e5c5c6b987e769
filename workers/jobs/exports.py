"""Threads that write the requested exports and remove expired ones."""

from __future__ import annotations

from webapp.exports import services
from webapp.exports.making import make
from workers.jobs.threads import Chore
from workers.runs.active_runs import closing


class Exporter(Chore):
    def do_one(self) -> bool:
        return write_one()


class ExportTidier(Chore):
    look_seconds = 10.0

    def do_one(self) -> bool:
        return tidy()


def tidy() -> bool:
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
