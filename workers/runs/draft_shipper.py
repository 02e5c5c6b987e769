"""Shipper of one run's drafts: what its agents are writing, to the users who watch.

Invariant: nothing depends on it: drafts that cannot be read are skipped, and the next ones replace
them. While nobody watches, the engine writes none.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import suppress
from pathlib import Path

from engine.events.drafts import EVERY_SECONDS, DraftReader
from webapp.telemetry import drafts

logger = logging.getLogger(__name__)


class DraftShipper:
    """Ships the drafts of a run at most every `EVERY_SECONDS`."""

    def __init__(self, run_id: uuid.UUID, run_dir: Path):
        self.run_id = run_id
        self._reader = DraftReader(run_dir)
        self._next = 0.0

    def ship(self) -> None:
        """Ships what has changed, if somebody watches and it is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_SECONDS
        if not drafts.is_watched(self.run_id):
            return
        try:
            self._reader.watch()
            changed = self._reader.read()
        except OSError as error:  # a full disk
            logger.debug("run %s: no drafts: %s", self.run_id, error)
            return
        if changed:  # nodes that have no token yet are no news
            drafts.publish(self.run_id, changed)

    def clear(self) -> None:
        """Discards all drafts of an engine that has ended, also on the pages of who watches."""
        with suppress(OSError):
            self._reader.clear()
        drafts.clear(self.run_id)

    def forget(self) -> None:
        """Discards all drafts, and who watches, of a run that has ended or begins again."""
        with suppress(OSError):
            self._reader.clear()
        drafts.forget(self.run_id)
