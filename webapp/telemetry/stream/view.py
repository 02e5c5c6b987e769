"""What somebody sees of one run's log: all of it, or what a share shows."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from webapp.telemetry.ingest.rows import Row


@dataclass(frozen=True, slots=True)
class View:
    """`until`: seq of the last event that is seen; `tree`: the only tree whose events are.

    None is no limit. `base`: where REST answers for it. `comments`: whether what people write about
    the run is theirs to see.
    """

    base: str
    until: int | None = None
    tree: int | None = None
    comments: bool = False

    @staticmethod
    def of_all(run_id: uuid.UUID) -> View:
        return View(f"/api/v1/runs/{run_id}", comments=True)

    def clamp(self, seq: int | None) -> int | None:
        """`seq`, or the last that is seen if that comes before."""
        known = [one for one in (seq, self.until) if one is not None]
        return min(known) if known else None

    def shows(self, row: Row) -> bool:
        return self.tree is None or row[3] == self.tree

    def status(self, told: dict[str, Any]) -> dict[str, Any] | None:
        """The run's row as far as the view shows it; None where it is of a later moment."""
        if self.until is not None:
            return None
        if self.tree is None:
            return told
        kept = {"state": told["state"], "step": told["step"], "steps": told["steps"]}
        return {**EMPTY_STATUS, **kept}


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
"""The fields of `experiments.presentation.status`, telling nothing."""
