"""Thread that renews the lease of one item while its worker computes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import Error, connection

from workers.jobs.job_thread import renew_seconds

logger = logging.getLogger(__name__)


class Heartbeat(threading.Thread):
    """Calls `renew` every `renew_seconds` until `stop`, also while a large file is hashed;
    `is_lost` is set once it raised `lost`: the item is not this worker's any more. A database that
    is away is waited for."""

    def __init__(self, name: str, renew: Callable[[], None], lost: type[Exception]):
        super().__init__(name=f"{name}-heartbeat", daemon=True)
        self._renew, self._lost = renew, lost
        self.is_lost = threading.Event()
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            while not self._ended.wait(renew_seconds()):
                try:
                    self._renew()
                except self._lost:
                    self.is_lost.set()
                    return
                except Error as error:
                    logger.warning("%s: waiting for the database: %s", self.name, error)
                    connection.close()
        finally:
            connection.close()

    def stop(self) -> None:
        """Returns when it has ended."""
        self._ended.set()
        self.join()
