"""Websocket connection: reads the client's messages, owns its subscriptions, ends them together.

Invariants: nothing is sent before the socket's user is authenticated; a subscription starts only
for a run that the user may see, and is checked again on each notification of changed access, when
the token expires, and every 30 s. All tasks of a socket belong to one group: the first that fails
cancels the others and determines the close code.
Waits: for the client's next message (no deadline: the server's own pings detect a dead peer), for
one send (20 s, then close 4408), for the heartbeat (15 s) and the recheck (30 s).
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from engine.config.deadlines import STREAM_SEND
from webapp.telemetry.stream import protocol
from webapp.telemetry.stream.access import (
    RejectedUser,
    address_of,
    ends_at,
    may_read,
    view_of,
    visible_among,
    why_to_leave,
)
from webapp.telemetry.stream.hub import POLL_SECONDS, DatabaseTrouble, Hub
from webapp.telemetry.stream.protocol import (
    Close,
    Closing,
    Inbound,
    Pong,
    Refused,
    Reply,
    Sid,
    Welcome,
)
from webapp.telemetry.stream.pump import WATCH_SECONDS, Pump
from webapp.telemetry.stream.stream_slots import RETRY_SECONDS, Slot, TooManyStreams, take_socket
from webapp.telemetry.stream.visitors import Visitor

RETRY_MS = 1000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Longest waits of a socket, in seconds."""

    send: float = field(default_factory=lambda: STREAM_SEND.seconds)
    """For the client to accept one frame."""
    recheck: float = 30.0
    """Between two checks that the user may still see the subscribed runs."""
    heartbeat: float = protocol.HEARTBEAT_SECONDS
    """Longest silence of the server."""
    poll: float = POLL_SECONDS
    """Between two looks for changed runs, of which no notification may have arrived."""
    watch: float = WATCH_SECONDS
    """Between two requests of a run's drafts, in which these are also read."""


_sockets: Counter[int] = Counter()
"""Open sockets of this process by user."""


class _Disconnected(Exception):
    """Raised when the client has disconnected; nothing more can be sent."""


class Connection:
    """Websocket connection; ASGI's `scope`, `receive`, `send` from Channels' session middleware."""

    def __init__(
        self, hub: Hub, deadlines: Deadlines, scope: dict[str, Any], receive: Any, send: Any
    ):
        self.hub, self.deadlines, self.scope = hub, deadlines, scope
        self._receive, self._send = receive, send
        self._sending = asyncio.Lock()
        self._last_sent = time.monotonic()
        self._pumps: dict[Sid, tuple[Pump, asyncio.Task[None]]] = {}
        self._greeted = False
        self._allowance = float(protocol.MAX_MESSAGES_PER_SECOND)
        self._refilled = time.monotonic()

    async def serve(self) -> None:
        """Accepts the socket and serves it to its end."""
        user = self.scope["user"]
        await self._send({"type": "websocket.accept", "subprotocol": protocol.SUBPROTOCOL})
        _sockets[user.pk] += 1
        slot = None
        try:
            slot = self._admit(user)
            async with asyncio.TaskGroup() as self._tasks:
                for work in (self._read(), self._recheck(), self._heartbeat()):
                    self._tasks.create_task(work)
        except* _Disconnected:
            pass
        except* Closing as group:
            await self._close(group.exceptions[0])
        except* DatabaseTrouble:
            trouble = "the database does not answer"
            await self._close(Closing(Close.TRY_LATER, trouble, RETRY_MS))
        finally:
            if slot:
                slot.free()
            _sockets[user.pk] -= 1
            if not _sockets[user.pk]:
                del _sockets[user.pk]

    def _admit(self, user: Any) -> Slot:
        """Takes a slot of the socket's address. Raises `Closing` if the socket is not allowed."""
        if isinstance(user, RejectedUser):
            raise user.why
        if not user.is_authenticated:
            raise Closing(Close.NOT_SIGNED_IN, "sign in first, or send a valid token")
        if not may_read(user):
            raise Closing(Close.NO_ACCESS, "this token does not read runs: it needs runs:read")
        limit = protocol.MAX_SOCKETS_PER_USER
        if isinstance(user, Visitor):
            limit = protocol.MAX_SOCKETS_PER_SHARE
        if _sockets[user.pk] > limit:
            raise Closing(
                Close.TOO_MANY, f"at most {limit} sockets per user: close one first", 10_000
            )
        try:
            return take_socket(address_of(self.scope))
        except TooManyStreams as refused:
            raise Closing(Close.TOO_MANY, str(refused), 1000 * RETRY_SECONDS) from None

    async def say(self, reply: Reply) -> None:
        """Sends one frame, in turn. Raises `Closing` if the client does not accept it in time."""
        frame = {"type": "websocket.send", "text": protocol.encode(reply)}
        async with self._sending:
            try:
                async with asyncio.timeout(self.deadlines.send):
                    await self._send(frame)
            except TimeoutError:
                logger.info(STREAM_SEND.passed)
                raise Closing(Close.TOO_SLOW, "a frame was not accepted in time", 0) from None
            except OSError:
                raise _Disconnected from None
            self._last_sent = time.monotonic()

    async def _close(self, closing: BaseException) -> None:
        while isinstance(closing, BaseExceptionGroup):
            closing = closing.exceptions[0]
        code = closing.bye.code
        # A client that accepts no frames cannot receive the reason.
        with suppress(TimeoutError, OSError, RuntimeError):
            async with asyncio.timeout(1):
                if code != Close.TOO_SLOW:
                    text = protocol.encode(closing.bye)
                    await self._send({"type": "websocket.send", "text": text})
                await self._send({"type": "websocket.close", "code": code, "reason": str(closing)})

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                raise _Disconnected
            self._count_message()
            try:
                await self._handle(self._parse(message))
            except Refused as refusal:
                await self.say(refusal.error)

    def _parse(self, message: dict[str, Any]) -> Inbound:
        text = message.get("text")
        if text is None:
            raise Closing(Close.PROTOCOL, "send text frames")
        if len(text.encode()) > protocol.MAX_FRAME_BYTES:
            limit = protocol.MAX_FRAME_BYTES
            raise Closing(Close.PROTOCOL, f"a frame may have {limit} bytes: send smaller ones")
        return protocol.decode(text)

    def _count_message(self) -> None:
        rate = protocol.MAX_MESSAGES_PER_SECOND
        now = time.monotonic()
        self._allowance = min(2.0 * rate, self._allowance + (now - self._refilled) * rate)
        self._refilled = now
        self._allowance -= 1
        if self._allowance < 0:
            raise Closing(Close.TOO_MANY, f"at most {rate} messages a second: send fewer", 5000)

    async def _handle(self, message: Inbound) -> None:
        match message:
            case protocol.Hello():
                await self._welcome(message)
            case _ if not self._greeted:
                raise Closing(Close.PROTOCOL, "send hello first")
            case protocol.Sub():
                await self._subscribe(message)
            case protocol.Unsub():
                self._pump(message.sid)
                self._drop(message.sid)
            case protocol.Set():
                self._pump(message.sid).max_hz = message.max_hz
            case protocol.Ack():
                pass  # the socket applies backpressure; an ack only shows that the client lives
            case protocol.Ping():
                await self.say(Pong())

    async def _welcome(self, hello: protocol.Hello) -> None:
        if hello.v != protocol.VERSION:
            raise Closing(Close.PROTOCOL, f"this server speaks version {protocol.VERSION}")
        self._greeted = True
        welcome = Welcome(uuid.uuid4().hex, self.deadlines.heartbeat, protocol.LIMITS)
        await self.say(welcome)

    async def _subscribe(self, sub: protocol.Sub) -> None:
        if sub.sid not in self._pumps and len(self._pumps) >= protocol.MAX_SUBSCRIPTIONS:
            limit = protocol.MAX_SUBSCRIPTIONS
            reason = f"at most {limit} subscriptions per socket: end one first"
            raise Refused("too_many", reason, sub.sid)
        if not await visible_among(self.scope["user"], [sub.run]):
            raise Refused("not_found", "no such run, or you may not see it", sub.sid)
        self._drop(sub.sid)
        view = view_of(self.scope["user"], sub.run)
        pump = Pump(self.hub, sub, self.say, view, self.deadlines.watch)
        self._pumps[sub.sid] = pump, self._tasks.create_task(pump.run())

    def _pump(self, sid: Sid) -> Pump:
        if sid not in self._pumps:
            raise Refused("unknown_sid", "subscribe first", sid)
        return self._pumps[sid][0]

    def _drop(self, sid: Sid) -> None:
        if sid in self._pumps:
            self._pumps.pop(sid)[1].cancel()

    async def _heartbeat(self) -> None:
        while True:
            silent = time.monotonic() - self._last_sent
            if silent >= self.deadlines.heartbeat:
                await self.say(Pong())
                silent = 0.0
            await asyncio.sleep(self.deadlines.heartbeat - silent)

    async def _recheck(self) -> None:
        user = self.scope["user"]
        with self.hub.watch_access(user.pk) as news:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._until_recheck()):
                        await news.wait()
                news.clear()
                if reason := await why_to_leave(self.scope):
                    raise Closing(Close.NOT_SIGNED_IN, reason)
                followed = {pump.sub.run for pump, _ in self._pumps.values()}
                if followed - await visible_among(user, followed):
                    raise Closing(Close.NO_ACCESS, "you may no longer see this run")

    def _until_recheck(self) -> float:
        """Returns the seconds until the next recheck or the expiry of the token or share."""
        ends = ends_at(self.scope["user"])
        if ends is None:
            return self.deadlines.recheck
        left = (ends - timezone.now()).total_seconds()
        return max(0.05, min(self.deadlines.recheck, left))
