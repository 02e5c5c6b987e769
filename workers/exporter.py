"""Writes the exports that people ask for."""

from __future__ import annotations

from webapp.exports import services
from webapp.exports.making import make
from workers.chores import Chore
from workers.duty import closing


class Exporter(Chore):
    def do_one(self) -> bool:
        return write_one()


def write_one() -> bool:
    """Write the export that waits longest; False if there is none."""
    services.fail_late()
    services.remove_expired()
    export = services.take()
    if export is not None:
        make(export, closing)
    return export is not None
