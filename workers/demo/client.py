"""A websocket client that follows one run to its end, as a browser does, and counts events.

Invariants:
- It requests only what comes after the last event that it has, whatever happened in between:
  a dropped socket, a killed web process, a restarted database.
- It compares the seq of every event with the one before: missing and doubled seqs are counted,
  never ignored.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import websockets
from django.db import DatabaseError

from engine.config.deadlines import DEMO_EVENTS, DEMO_SIGN_IN
from engine.events.vocabulary import Event, RunState
from webapp.telemetry.ingest.rows import decode_event
from webapp.telemetry.stream.protocol import SUBPROTOCOL, VERSION

ENDED = {RunState.FINISHED, RunState.FAILED, RunState.STOPPED}
RETRY_SECONDS = 0.5
SILENCE_SECONDS = 45.0
"""A socket without any frame for this long is dead: the server sends one every 15 s."""
REFUSED = {4400, 4401, 4403}
"""Close codes after which a retry does not help."""


class DemoClient:
    """Follows `run_id` on the server at `address`. `new_link` returns a one-time sign-in link."""

    def __init__(
        self,
        address: str,
        new_link: Callable[[], str],
        run_id: str,
        on_event: Callable[[Event], None],
    ):
        self.address = address
        self.new_link = new_link
        self.run_id = run_id
        self.on_event = on_event
        self.last_seq = 0
        self.delivered = 0
        self.gaps = 0
        """Number of skipped events."""
        self.doubles = 0
        self.reconnects = 0
        self.first_node_at: float | None = None
        """`time.monotonic()` at which the first `node.open` arrived."""
        self.state: str | None = None
        self._epoch: str | None = None
        self._last_kind = ""
        self._ended_at: float | None = None

    async def follow(self) -> None:
        """Follows the run until it has ended and its last event has arrived.

        Raises:
            PermissionError: the server refuses this client for good.
        """
        cookie = await self._signed_in()
        while not self._complete():
            try:
                await self._one_socket(cookie)
            except (OSError, TimeoutError, websockets.WebSocketException) as error:
                code = getattr(getattr(error, "rcvd", None), "code", None)
                if code in REFUSED:
                    raise PermissionError(f"the stream refuses this client: {error}") from None
                self.reconnects += 1
                await asyncio.sleep(RETRY_SECONDS)

    async def _signed_in(self) -> str:
        """Returns the session cookie of a one-time link, as a header. Waits while a web process or
        a database restarts, as it does later on. Each attempt uses a new link: a web process may be
        killed after it spent one and before it answers.

        Raises:
            PermissionError: no link worked within `DEMO_SIGN_IN`; it names the last cause.
        """
        deadline = time.monotonic() + DEMO_SIGN_IN.seconds
        # It is on this machine: never through a proxy of the environment.
        async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
            while True:
                try:
                    answer = await http.get(await asyncio.to_thread(self.new_link))
                    if session := answer.cookies.get("sessionid"):
                        return f"sessionid={session}"
                    cause = f"the server answered {answer.status_code}"
                except (httpx.TransportError, DatabaseError) as error:
                    cause = f"{type(error).__name__}: {error}"
                if time.monotonic() > deadline:
                    raise PermissionError(
                        f"the sign-in link did not work: {cause}; {DEMO_SIGN_IN.remedy}"
                    )
                self.reconnects += 1
                await asyncio.sleep(RETRY_SECONDS)

    async def _one_socket(self, cookie: str) -> None:
        url = self.address.replace("http", "ws", 1) + "/stream"
        async with websockets.connect(
            url,
            subprotocols=[SUBPROTOCOL],
            origin=self.address,
            proxy=None,
            additional_headers={"Cookie": cookie},
            max_size=None,
            open_timeout=10,
            close_timeout=2,
        ) as socket:
            await socket.send(json.dumps({"type": "hello", "v": VERSION}))
            await socket.send(json.dumps(self._subscription()))
            while not self._complete():
                wait = 1.0 if self._ended_at else SILENCE_SECONDS
                try:
                    frame = await asyncio.wait_for(socket.recv(), wait)
                except TimeoutError:
                    if self._ended_at is None:
                        raise
                    continue
                self.take(json.loads(frame))

    def _subscription(self) -> dict[str, Any]:
        return {
            "type": "sub", "sid": 1, "run": self.run_id, "topics": ["*"],
            "after": self.last_seq, "epoch": self._epoch,
        }  # fmt: skip

    def take(self, frame: dict[str, Any]) -> None:
        """Handles one frame of the server."""
        match frame["type"]:
            case "subscribed":
                self._epoch = frame["epoch"]
            case "batch":
                for event in frame["events"]:
                    self._take_event(*event)
            case "status":
                self.state = frame["run"]["state"]
                ended = self.state in ENDED
                self._ended_at = (self._ended_at or time.monotonic()) if ended else None
            case "error":
                raise PermissionError(f"{frame['code']}: {frame['message']}")

    def _take_event(self, seq: int, milliseconds: int, kind: str, payload: dict[str, Any]) -> None:
        if seq <= self.last_seq:
            self.doubles += 1
            return
        self.gaps += seq - self.last_seq - 1
        self.last_seq = seq
        self.delivered += 1
        self._last_kind = kind
        if kind == "node.open" and self.first_node_at is None:
            self.first_node_at = time.monotonic()
        self.on_event(decode_event(seq, milliseconds, kind, payload))

    def _complete(self) -> bool:
        if self._ended_at is None:
            return False
        # A run's last event carries its final state.
        late = time.monotonic() - self._ended_at > DEMO_EVENTS.seconds
        return self._last_kind == "run.state" or late
