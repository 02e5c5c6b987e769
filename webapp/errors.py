"""Base of the apps' errors: REST answers them without importing the app that raised one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refused(Exception):
    """Raised if a request is refused. Apps subclass it; the message names reason and remedy."""

    status = 409
    """Status of the HTTP response."""
    sentence = "Nothing changed: {}"
    """The `detail` of the response; `{}` is replaced by the message."""
    problems: Any = ()
    """One dict (path, value, reason) for each invalid field."""
    members: Mapping[str, Any] = {}
    """Further members of the response."""

    @property
    def detail(self) -> str:
        return self.sentence.format(self)
