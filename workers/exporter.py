"""Writes the exports that people ask for, beside the runs that the worker keeps.

A thread of its own: a run holds its slot of the pool for hours, and an export would wait for it.
The database is the queue; of several workers each takes another one.
"""

from __future__ import annotations

import logging
import threading

from django.db import Error, connection

from webapp.exports import services
from webapp.exports.making import make
from workers.duty import closing

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class Exporter(threading.Thread):
    """Runs in a worker until the worker closes."""

    def __init__(self) -> None:
        super().__init__(name="exporter", daemon=True)

    def run(self) -> None:
        while not closing.is_set():
            try:
                while write_one():
                    pass
            except Error as error:
                logger.warning("exports: waiting for the database: %s", error)
            connection.close()
            closing.wait(LOOK_SECONDS)


def write_one() -> bool:
    """Write the export that waits longest; False if there is none."""
    services.fail_late()
    services.remove_expired()
    export = None if closing.is_set() else services.take()
    if export is not None:
        make(export, closing)
    return export is not None
