"""The real server in a thread, and a real client of its stream."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from websockets.sync.client import ClientConnection, connect

from tests.helpers.turned_clock import TurnedClock
from tests.helpers.waiting import eventually, patience
from webapp.accounts.models import User
from webapp.config.asgi import Application
from webapp.http.connections import Limits
from webapp.http.server import configuration, limits_for
from webapp.telemetry.stream.connection import Deadlines

HEAR_SECONDS = 20.0
"""Longest wait for a frame of the server, times the patience."""


@dataclass(frozen=True)
class Served:
    """A server on its own port."""

    port: int
    server: uvicorn.Server
    clock: TurnedClock
    """Of the server's loop."""

    def wait_until_idle(self) -> None:
        """Waits until every socket has ended for the server too: its queries would lock against the
        emptying of the tables for the next test. Idle keep-alive connections of HTTP are closed at
        once."""
        state = self.server.server_state
        for connection in list(state.connections):
            if hasattr(connection, "cycle"):  # of HTTP: not a websocket
                connection.loop.call_soon_threadsafe(connection.shutdown)
        eventually(lambda: not state.connections and not state.tasks, "the server to be idle")


@contextmanager
def a_server(
    limits: Limits | None = None, options: dict[str, Any] | None = None, **deadlines: float
) -> Iterator[Served]:
    """Serves on a free port until the block ends, as `manage.py serve_web` does. `options` are
    further ones of uvicorn."""
    # Its protocol is named, because asyncio sends small segments at once on such sockets alone; on
    # others each answer waits 40 ms for an acknowledgement of its head.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    app = Application(Deadlines(**deadlines))
    # Frames that are too long reach the application, which closes with a code of its own.
    clock = TurnedClock()
    ours = {"timeout_graceful_shutdown": 5, "ws_max_size": 16 << 20, "loop": clock.make_loop}
    config = configuration(limits or limits_for(2000, 10_000), app, **ours, **(options or {}))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    eventually(lambda: server.started or not thread.is_alive(), "the server to start")
    try:
        yield Served(listener.getsockname()[1], server, clock)
    finally:
        server.should_exit = True
        thread.join(20 * patience())
        listener.close()
    assert not thread.is_alive()


def a_session(user: User) -> SessionStore:
    """A signed-in session of `user`, as after the sign-in page."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return session


class Client:
    """Speaks grove.v1, checks the order of the events that it receives, and keeps them."""

    def __init__(self, port: int, session: SessionStore | None, **options: Any):
        headers = options.pop("additional_headers", {})
        if session:
            headers["Cookie"] = f"sessionid={session.session_key}"
        options.setdefault("origin", f"http://127.0.0.1:{port}")
        options.setdefault("subprotocols", ["grove.v1"])
        options.setdefault("open_timeout", 10 * patience())
        self._open = ExitStack()
        self.socket: ClientConnection = self._open.enter_context(
            connect(
                f"ws://127.0.0.1:{port}{options.pop('path', '/stream')}",
                additional_headers=headers,
                max_size=None,
                compression=None,
                **options,
            )
        )
        self.events: list[list[Any]] = []
        self.said: list[dict[str, Any]] = []
        self.last: int | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._open.close()

    def say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def hear(self, seconds: float = HEAR_SECONDS, pong: bool = False) -> dict[str, Any]:
        """Receives a frame, skips pongs unless `pong`; checks batches by cursor and keeps them."""
        end = time.monotonic() + seconds * patience()
        message = {"type": "pong"}
        while message["type"] == "pong":
            message = json.loads(self.socket.recv(timeout=max(0.0, end - time.monotonic())))
            if pong:
                break
        self.said.append(message)
        if message["type"] == "batch":
            assert self.last is None or message["from"] == self.last + 1
            assert all(message["from"] <= event[0] <= message["to"] for event in message["events"])
            self.events += message["events"]
            self.last = message["to"]
        return message

    def hear_of(self, kind: str) -> dict[str, Any]:
        """Receives up to the next frame of this type."""
        while (message := self.hear(pong=kind == "pong"))["type"] != kind:
            pass
        return message

    def follow(self, run: Any, after: int | None = 0, **options: Any) -> dict[str, Any]:
        """Greets and subscribes; returns the server's response, also one that comes before."""
        self.say(type="hello", v=1)
        if (greeting := self.hear())["type"] == "bye":
            return greeting
        assert greeting["type"] == "welcome"
        self.say(type="sub", sid=1, run=str(run.pk), after=after, max_hz=50, **options)
        self.last = after
        return self.hear()

    def hear_until(self, seq: int) -> list[int]:
        """Reads up to this event; returns the seqs of all events received."""
        while self.last is None or self.last < seq:
            self.hear()
        return [event[0] for event in self.events]
