"""ASGI application that uvicorn serves: static files, HTTP by Django, the websocket at /stream.

Channels checks the websockets of pages (origin, cookies, session, user). A program authenticates by
its token: no browser lets a foreign page send that header, so the origin does not matter; nor does
a guest's, whom the secret of a share admits without a cookie. Once admitted, `Connection` speaks to
the ASGI server itself, because a consumer costs twenty times as much per frame.
"""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Any

import django

from engine.config import tracing
from engine.resources.child_processes import restore_sigchld
from engine.resources.loopback import except_loopback

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
# A server of ASGI other than `serve_web` has no entry point of ours.
restore_sigchld()
except_loopback()
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from webapp.http import body_limit, log_context  # noqa: E402
from webapp.http.metrics import sockets  # noqa: E402
from webapp.http.single_thread_handler import OneThreadHandler  # noqa: E402
from webapp.http.static_files import StaticFiles  # noqa: E402
from webapp.sharing.sockets import guest_by_secret, shared_secret  # noqa: E402
from webapp.telemetry.stream.access import (  # noqa: E402
    address_of,
    authorization,
    user_by_token,
)
from webapp.telemetry.stream.connection import Connection, Deadlines  # noqa: E402
from webapp.telemetry.stream.hub import Hub  # noqa: E402
from webapp.telemetry.stream.protocol import SUBPROTOCOL  # noqa: E402

STREAM_PATH = "/stream"


class Application:
    """One per process; its hub lives from the server's start to its end."""

    def __init__(self, deadlines: Deadlines | None = None) -> None:
        self._deadlines = deadlines or Deadlines()
        self._hub: Hub | None = None
        self._files = StaticFiles()
        self._http = OneThreadHandler()
        self._stream = AllowedHostsOriginValidator(AuthMiddlewareStack(self._serve_stream))

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        else:
            name = log_context.begin_request(scope)
            await self._answer(scope, receive, log_context.naming(name, send))

    async def _answer(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            if refusal := body_limit.refusal_of(scope):
                await body_limit.refuse(refusal, send)
            elif file := self._files.find(scope["path"]):
                await self._files.send(file, scope, send)
            else:
                await self._http(scope, body_limit.limited(receive), send)
        elif header := authorization(scope):
            scope["user"] = await user_by_token(header, address_of(scope))
            await self._serve_stream(scope, receive, send)
        elif secret := shared_secret(scope):
            scope["user"] = await guest_by_secret(secret, address_of(scope))
            await self._serve_stream(scope, receive, send)
        else:
            await self._stream(scope, receive, send)

    async def _run_lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        tracing.start("grove-web")
        self._hub = Hub(self._deadlines.poll)
        await self._hub.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._hub.close()
        await asyncio.to_thread(tracing.stop)  # it may wait for the collector
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve_stream(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        is_stream = scope["path"] == STREAM_PATH and SUBPROTOCOL in scope["subprotocols"]
        if not is_stream or self._hub is None:
            await send({"type": "websocket.close", "code": 1002})
            return
        with sockets.track_inprogress():
            await Connection(self._hub, self._deadlines, scope, receive, send).serve()


application = Application()

# What is imported stays: collections that traversed it took a sixth of the time of storing a large
# batch.
gc.collect()
gc.freeze()
