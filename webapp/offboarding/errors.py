"""Refusals of the deletion and of the import of workspaces."""

from __future__ import annotations

from engine.config.errors import printable, shown
from webapp.errors import Refused


class CloseRefused(Refused):
    """Raised if the workspace cannot be deleted now; the message says why and what to do."""


class ImportRefused(Refused):
    """Raised if an export cannot be imported. Nothing of it is kept."""

    sentence = "Nothing was imported. {}"
    status = 422

    def __init__(self, member: str, reason: str, status: int = 422):
        self.status = status
        name, why = printable(member[:200]), printable(reason[:4000])
        self.problems = [{"path": "file", "value": shown(name), "reason": why}]
        super().__init__(f"{name}: {why}")
