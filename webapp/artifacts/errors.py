"""Errors of uploads, each with the field, the value and the remedy."""

from __future__ import annotations

from typing import Any

from engine.config.errors import shown
from webapp.errors import Refused


class UploadRefused(Refused):
    """Raised if an upload is refused; `status` is that of HTTP (413 too large, 422 invalid)."""

    sentence = "The upload is refused."

    def __init__(self, path: str, value: Any, reason: str, status: int = 422):
        self.problems = [{"path": path, "value": shown(value), "reason": reason}]
        self.status = status
        super().__init__(reason)


class OffsetMismatch(Refused):
    """Raised if the bytes do not start at the upload's offset, which is `offset`."""

    sentence = "Nothing was added: {}."

    def __init__(self, offset: int, reason: str):
        self.offset = offset
        self.members = {"offset": offset}
        super().__init__(reason)
