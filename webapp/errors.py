"""Base of the apps' errors: REST answers them without importing the app that raised one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
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


@dataclass(eq=False)
class Queued(Exception):
    """Raised if a request has to wait for its turn. It keeps its place while it is repeated."""

    place: int
    """Place in the queue, from 1."""
    waiting: int
    """Number of places in the queue."""
    until: datetime
    """When the place is given up, unless the request is repeated."""

    SECONDS = 2
    """Seconds until the request should be repeated."""

    @property
    def position(self) -> str:
        return f"place {self.place} of {self.waiting} in the queue"

    def __str__(self) -> str:
        return (
            f"It is not your turn yet: {self.position}. Nothing is lost: repeat it, which keeps "
            f"the place, before {self.until:%H:%M:%S} UTC."
        )
