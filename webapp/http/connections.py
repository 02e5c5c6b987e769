"""The open connections of one web process: which wait for their client, and which gives way.

Invariant: no more than `Limits.most` connections stay open, and while any of them waits for its
client a new one is admitted. So whoever opens connections and sends nothing shuts out only
connections that send nothing either.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

CLOSE_SECONDS = 3
"""For responses under way when the process is to end."""


class Phase(enum.IntEnum):
    """What of its client a connection waits for; of several, the lowest gives way first."""

    CLOSING = 0
    """The client takes the last bytes of a connection that is closed already."""
    HEAD = 1
    """The first request or the next one, up to the end of its headers."""
    BODY = 2
    SEND = 3
    """The client takes what it was sent."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one web process. Seconds are those for which a client may keep its connection waiting."""

    most: int
    """Connections at once, websockets and event streams among them."""
    most_per_address: int
    """Of these, connections of one address that wait for their client."""
    head_seconds: float = 10.0
    """From the connection, or the end of the last response, to the end of the request's headers."""
    body_seconds: float = 20.0
    """For a body, and one more for each `body_bytes_per_second` that came."""
    body_bytes_per_second: int = 8192
    send_seconds: float = 20.0
    """In each of these a client takes `send_bytes_per_second` of what waits for it."""
    send_bytes_per_second: int = 1024
    socket_close_seconds: float = 2.0
    """For the client's answer to the end of a websocket."""


class Connection(Protocol):
    """What can be closed at once."""

    address: str

    def drop(self) -> None: ...


class Connections:
    """Those that wait for their client, oldest first. For the thread of the event loop alone."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self._phases: dict[Phase, OrderedDict[Connection, None]] = {
            phase: OrderedDict() for phase in Phase
        }
        self._addresses: dict[str, OrderedDict[Connection, None]] = {}

    def admit(self, address: str, total: int) -> bool:
        """Whether a new connection from `address` may stay beside `total` others; the one that has
        waited longest is closed for it where there is no room."""
        waiting = self._addresses.get(address)
        if waiting and len(waiting) >= self.limits.most_per_address:
            next(iter(waiting)).drop()
            return True
        if total < self.limits.most:
            return True
        oldest = next((next(iter(line)) for line in self._phases.values() if line), None)
        if oldest is None:
            return False
        oldest.drop()
        return True

    def enter(self, connection: Connection, phase: Phase) -> None:
        """It waits for its client from now on."""
        self._phases[phase][connection] = None
        self._addresses.setdefault(connection.address, OrderedDict())[connection] = None

    def leave(self, connection: Connection, phase: Phase) -> None:
        """It waits no longer, or has ended."""
        self._phases[phase].pop(connection, None)
        waiting = self._addresses.get(connection.address, OrderedDict())
        waiting.pop(connection, None)
        if not waiting:
            self._addresses.pop(connection.address, None)
