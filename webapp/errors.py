"""The base of what apps refuse: REST answers it without knowing the app that raised it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refused(Exception):
    """Why something is not done. Apps subclass it; the message names the reason and the remedy."""

    status = 409
    """Of the HTTP response."""
    sentence = "Nothing changed: {}"
    """The `detail` of the response; `{}` stands for the message."""
    problems: Any = ()
    """One dict (path, value, reason) for each field at fault."""
    members: Mapping[str, Any] = {}
    """Further members of the response."""

    @property
    def detail(self) -> str:
        return self.sentence.format(self)
