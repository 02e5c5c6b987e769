"""Errors of datasets: each fault with its location and remedy."""

from __future__ import annotations

from typing import Any

from engine.config.errors import printable, shown
from webapp.errors import Refused


class DatasetRefused(Refused):
    """Raised when a dataset cannot be accepted, or not used this way; `status` is that of HTTP."""

    sentence = "The dataset is refused."

    def __init__(self, problems: list[dict[str, Any]], status: int = 422):
        self.problems = [
            {
                "path": shown(one["path"]),
                "value": shown(one["value"]),
                "reason": printable(one["reason"][:4000]),
            }
            for one in problems
        ]
        self.status = status
        super().__init__("; ".join(one["reason"] for one in self.problems))


def refused(path: str, value: Any, reason: str, status: int = 422) -> DatasetRefused:
    """Returns a refusal for one reason."""
    return DatasetRefused([{"path": path, "value": value, "reason": reason}], status)
