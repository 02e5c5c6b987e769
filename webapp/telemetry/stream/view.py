"""View of one run's log: all of it, or what a share shows."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from webapp.telemetry.ingest.rows import Row


@dataclass(frozen=True, slots=True)
class View:
    """A reader's view. `until`: seq of the last visible event; `tree`: the only visible tree.

    None means no limit. `base`: its REST address. `comments`: whether the run's comments are
    visible.
    """

    base: str
    until: int | None = None
    tree: int | None = None
    comments: bool = False

    @staticmethod
    def of_all(run_id: uuid.UUID) -> View:
        return View(f"/api/v1/runs/{run_id}", comments=True)

    def clamp(self, seq: int | None) -> int | None:
        """Returns the smaller of `seq` and the last visible event."""
        limits = [one for one in (seq, self.until) if one is not None]
        return min(limits) if limits else None

    def shows(self, row: Row) -> bool:
        return self.tree is None or row[3] == self.tree

    def status(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the visible part of the run's row; None if the view ends at an earlier event."""
        if self.until is not None:
            return None
        if self.tree is None:
            return row
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
