"""Registry of one web process's open connections: which wait, and which is closed first.

Invariant: no more than `Limits.most` connections stay open, and while any of them waits for its
client a new one is admitted. So a client that opens connections and sends nothing shuts out only
connections that send nothing either.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol


class Phase(enum.IntEnum):
    """What a connection waits for its client to do; of several, the lowest is closed first."""

    CLOSING = 0
    """The client reads the last bytes of a connection that is closed already."""
    HEAD = 1
    """The first request or the next one, up to the end of its headers."""
    BODY = 2
    SEND = 3
    """The client reads what it was sent."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one web process. Seconds are those for which a client may be waited for."""

    most: int
    """Concurrent connections, websockets and event streams among them."""
    most_per_address: int
    """Of these, connections of one address that wait for their client."""
    head_seconds: float = 10.0
    """From the connection, or the end of the last response, to the end of the request's headers."""
    body_seconds: float = 20.0
    """For a body, and one more for each `body_bytes_per_second` received."""
    body_bytes_per_second: int = 8192
    send_seconds: float = 20.0
    """In each of these a client must read `send_bytes_per_second` of the unsent bytes."""
    send_bytes_per_second: int = 1024
    socket_close_seconds: float = 2.0
    """For the client's response to the close of a websocket."""


class Connection(Protocol):
    """Protocol of a connection that can be closed at once."""

    address: str

    def drop(self) -> None: ...


class Connections:
    """Connections that wait for their client, oldest first. For the event loop's thread alone."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self._phases: dict[Phase, OrderedDict[Connection, None]] = {
            phase: OrderedDict() for phase in Phase
        }
        self._addresses: dict[str, OrderedDict[Connection, None]] = {}

    def admit(self, address: str, total: int) -> bool:
        """Whether to admit a new connection from `address` alongside `total` others; at a limit,
        closes the one that has waited longest."""
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
        """Registers that the connection waits for its client from now on."""
        self._phases[phase][connection] = None
        self._addresses.setdefault(connection.address, OrderedDict())[connection] = None

    def leave(self, connection: Connection, phase: Phase) -> None:
        """Registers that it waits no longer, or has ended."""
        self._phases[phase].pop(connection, None)
        waiting = self._addresses.get(connection.address, OrderedDict())
        waiting.pop(connection, None)
        if not waiting:
            self._addresses.pop(connection.address, None)
