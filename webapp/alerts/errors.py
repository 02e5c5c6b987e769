"""Refusals of rules, channels and preferences."""

from __future__ import annotations

from engine.config.errors import shown
from webapp.errors import Refused


class AlertRefused(Refused):
    """Raised for a value that cannot be used; names the field, the value and the remedy."""

    status = 422
    sentence = "Some parameters cannot be used."

    def __init__(self, path: str, value: object, reason: str):
        self.path, self.reason = path, reason
        self.problems = [{"path": path, "value": shown(value), "reason": reason}]
        super().__init__(reason)


class RuleDeleted(AlertRefused):
    """Raised for a change of a rule that somebody deleted meanwhile."""

    status = 404
    sentence = "It was deleted meanwhile."
