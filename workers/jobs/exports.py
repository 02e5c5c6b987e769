"""Writes the exports that people ask for, and tidies up after them."""

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
    """End what nobody finished in time; remove what has expired, and files whose rows are gone.
    Nothing is left then."""
    services.fail_late()
    services.remove_expired()
    services.remove_strays()
    return False


def write_one() -> bool:
    """Write the export that waits longest; False if there is none."""
    export = services.take()
    if export is not None:
        make(export, closing)
    return export is not None
