"""View of one run's log: a member's, or a guest's, who sees the part that the share shows, and of
that only what is in the list of `telemetry.guests`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from webapp.telemetry import guests
from webapp.telemetry.ingest.rows import Row, encode_row


@dataclass(frozen=True, slots=True)
class View:
    """A reader's view. `until`: seq of the last visible event; `tree`: the only visible tree.

    None means no limit. `base`: its REST address. `member`: whether events are visible in full, and
    the run's comments.
    """

    base: str
    until: int | None = None
    tree: int | None = None
    member: bool = False

    @staticmethod
    def of_all(run_id: uuid.UUID) -> View:
        return View(f"/api/v1/runs/{run_id}", member=True)

    def clamp(self, seq: int | None) -> int | None:
        """Returns the smaller of `seq` and the last visible event."""
        limits = [one for one in (seq, self.until) if one is not None]
        return min(limits) if limits else None

    def encode(self, row: Row) -> bytes:
        """Returns the visible part of a stored event as on the wire; empty if nothing of it is."""
        if self.tree is not None and row[3] != self.tree:
            return b""
        shown = row if self.member else guests.row(row)
        return encode_row(shown) if shown else b""

    def payload(self, kind: str, stored: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the visible part of a stored payload; None if nothing of the event is."""
        return stored if self.member else guests.payload(kind, stored)

    def shows_series(self, name: str) -> bool:
        return self.member or guests.shows_series(name)

    def status(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the visible part of the run's row; None if the view ends at an earlier event."""
        if self.until is not None:
            return None
        if self.tree is None:
            return row if self.member else guests.status(row)
        visible = {"state": row["state"], "step": row["step"], "steps": row["steps"]}
        return {**EMPTY_STATUS, **visible}


EMPTY_STATUS: dict[str, Any] = {
    "state": "running",
    "stop_requested": False,
    "step": 0,
    "steps": 0,
    "waiting": None,
    "error": "",
    "restarts": 0,
    "queued_at": None,
    "started_at": None,
    "finished_at": None,
    "result": {},
}
"""Fields of `experiments.presentation.status`, with neutral values."""
