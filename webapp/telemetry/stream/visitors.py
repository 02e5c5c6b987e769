"""Visitors of the stream without an account, whom another app admits to one run."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from webapp.telemetry.stream.view import View


@dataclass(frozen=True, slots=True)
class Visitor(ABC):
    """Replaces the user of a socket. Subclasses say what it sees, and until when."""

    view: View
    is_authenticated = True
    token = None

    @property
    @abstractmethod
    def pk(self) -> int:
        """An id that no user has, by which sockets are counted and notified of changed access."""

    @property
    @abstractmethod
    def run_id(self) -> uuid.UUID:
        """The only run that it sees."""

    @property
    @abstractmethod
    def expires(self) -> datetime:
        """When its admission expires."""

    @abstractmethod
    def is_admitted(self) -> bool:
        """Returns whether it is still admitted; reads the database."""
