"""Refusals of deletions and of how long runs are kept."""

from __future__ import annotations

from webapp.errors import Refused


class DeletionRefused(Refused):
    """Raised if a run cannot be deleted now; the message names what prevents it and the remedy."""

    def __init__(self, run: str, reasons: list[str]):
        self.reasons = reasons
        super().__init__(f"{run} cannot be deleted: {'; '.join(reasons)}.")
