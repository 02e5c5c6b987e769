"""HTTP and websocket protocols of uvicorn with a deadline for everything that a client owes.

uvicorn itself closes only connections that are idle after a response. These protocols also close a
connection that sends no request, sends its headers or body too slowly, or does not read its
response.

Invariant: at any moment a connection either waits for its client, in one `Phase` with a deadline,
or this process works for it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from webapp.http.connections import Connections, Phase

logger = logging.getLogger(__name__)

_FULL = b"Too many connections. Try again in seconds.\n"
_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_FULL), _FULL)
)
_WARN_EVERY_SECONDS = 60.0
_warned_at = -_WARN_EVERY_SECONDS


class GuardedHTTP(H11Protocol):
    """One connection of HTTP/1.1 among `guard`."""

    def __init__(self, *, guard: Connections, **given: Any):
        super().__init__(**given)
        self.address = "unknown"
        self._guard = guard
        self._is_socket = False
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        """When the phase began, or was checked last, by the clock of the loop."""
        self._received = 0
        """Bytes in this phase."""
        self._unsent = 0
        """Bytes that waited for the client at the last check."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        others = len(self.connections)
        super().connection_made(transport)
        if self.client:
            self.address = self.client[0]
        if others >= self._guard.limits.most:
            _warn(others)
        if self._guard.admit(self.address, others):
            self._check_phase()
        else:
            self.conn.send_failed()
            transport.write(_REFUSED)
            transport.close()
            self._enter(Phase.CLOSING)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._received += len(data)
        super().data_received(data)
        self._check_phase()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._check_phase()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._check_phase()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_phase()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._check_phase()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._is_socket = True
        self._enter(None)
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(None)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Closes at once, whatever is still unsent."""
        self._enter(None)
        self.transport.abort()

    def _check_phase(self) -> None:
        phase = self._current_phase()
        if phase is not self._phase:
            self._enter(phase)

    def _current_phase(self) -> Phase | None:
        if self._is_socket:
            return None
        if self.transport.is_closing():
            return Phase.CLOSING
        if self.flow.write_paused:
            return Phase.SEND
        if self.conn.their_state is h11.SEND_BODY:
            return Phase.BODY
        return Phase.HEAD if self.conn.their_state is h11.IDLE else None

    def _enter(self, phase: Phase | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._phase is not None:
            self._guard.leave(self, self._phase)
        self._phase = phase
        if phase is None:
            return
        self._guard.enter(self, phase)
        self._since, self._received = self.loop.time(), 0
        self._unsent = self.transport.get_write_buffer_size()
        limits = self._guard.limits
        seconds = {Phase.HEAD: limits.head_seconds, Phase.BODY: limits.body_seconds}
        self._check_again_in(seconds.get(phase, limits.send_seconds))

    def _check_again_in(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._on_deadline)

    def _on_deadline(self) -> None:
        left = self._seconds_left()
        if left > 0:
            self._check_again_in(left)
        else:
            self.drop()

    def _seconds_left(self) -> float:
        """Seconds until the client has kept this connection waiting for too long; 0 if it has."""
        limits = self._guard.limits
        if self._phase is Phase.BODY:
            if self.flow.read_paused:  # reading is paused by us
                return limits.body_seconds
            earned = limits.body_seconds + self._received / limits.body_bytes_per_second
            return max(0.0, self._since + earned - self.loop.time())
        if self._phase in (Phase.SEND, Phase.CLOSING):
            before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
            taken = before - self._unsent
            is_enough = taken >= limits.send_bytes_per_second * limits.send_seconds
            return limits.send_seconds if is_enough else 0.0
        return 0.0


class GuardedSocket(WebSocketsSansIOProtocol):
    """A websocket with a short deadline for its client's close, dropped at once where room is
    needed.

    While it is open its deadlines are those of `telemetry.stream.connection` and of uvicorn's
    pings.
    """

    def __init__(self, *, guard: Connections, **given: Any):
        super().__init__(**given)
        self.address = "unknown"
        self._guard = guard
        self.close_timeout = guard.limits.socket_close_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client:
            self.address = self.client[0]

    async def run_asgi(self) -> None:
        await super().run_asgi()
        if not self.disconnected:
            self._guard.enter(self, Phase.CLOSING)
            # A client that reads nothing would keep what is unsent, and the connection, forever.
            self.loop.call_later(self.close_timeout, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leave(self, Phase.CLOSING)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Closes at once."""
        self._guard.leave(self, Phase.CLOSING)
        self.transport.abort()


def _warn(open_connections: int) -> None:
    global _warned_at
    now = asyncio.get_running_loop().time()
    if now - _warned_at >= _WARN_EVERY_SECONDS:
        _warned_at = now
        logger.warning(
            "%d connections are open, the most that GROVE_CONNECTIONS allows: "
            "those that wait longest for their client are closed",
            open_connections,
        )
