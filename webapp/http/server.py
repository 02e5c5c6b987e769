"""Web process: uvicorn with limits and deadlines on its connections.

Invariant: the process may have more files open than connections, because a burst of them, the
kernel's whole queue, is accepted before any is closed for it.
"""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn
from django.conf import settings

from engine.config.deadlines import WEB_CLOSE
from engine.config.log_lines import JSON
from webapp.http.connections import Connections, Limits
from webapp.http.protocol import GuardedHTTP, GuardedSocket

MAX_FRAME_BYTES = 65536
"""Maximum size of one inbound websocket frame."""
_MOST_FILES = 1 << 17
_OTHER_FILES = 256
"""For the database, the log, static files, uploads."""
_ADDRESS_SHARE = 4
_BACKLOG = 1024
"""Connections that the kernel completes before they are accepted. With a short queue it drops those
of all clients while one opens many at once, and they retry only after one to three seconds."""


def serve(host: str, port: int) -> int:
    """Serves until a signal ends it; returns the exit status, 3 if it could not start. With port 0
    the system chooses one, and the first line of the output says which."""
    limits = limits_for(settings.CONNECTIONS, raise_file_limit())
    server = _Server(configuration(limits, host=host, port=port))
    server.run()
    return 0 if server.started else 3


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.config.port == 0:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            print(f"Listening on http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)


def configuration(
    limits: Limits, app: Callable[..., Any] | str = "webapp.config.asgi:application", **options: Any
) -> uvicorn.Config:
    """uvicorn's settings of one server with these limits."""
    guard = Connections(limits)
    ours: dict[str, Any] = {
        "http": partial(GuardedHTTP, guard=guard),
        "ws": partial(GuardedSocket, guard=guard),
        "ws_max_size": MAX_FRAME_BYTES,
        "backlog": _BACKLOG,
        # From other peers, X-Forwarded-For and X-Forwarded-Proto are a client's claim.
        "proxy_headers": bool(settings.TRUSTED_PROXIES),
        "forwarded_allow_ips": settings.TRUSTED_PROXIES,
        "access_log": False,
        "log_level": "warning",
        "timeout_graceful_shutdown": WEB_CLOSE.whole_seconds,
    }
    if settings.LOG_FORMAT == JSON:
        ours["log_config"] = None  # uvicorn's loggers then write to ours
    return uvicorn.Config(app, **{**ours, **options})


def limits_for(connections: int, files: int) -> Limits:
    """`connections` concurrent connections, or as many as `files` allow."""
    free = files - _OTHER_FILES
    most = max(1, min(connections, max(free - _BACKLOG, free // 2)))
    if most < connections:
        print(
            f"GROVE_CONNECTIONS = {connections}, but {files} files may be open here: "
            f"{most} connections are served concurrently; raise the limit (ulimit -n)",
            file=sys.stderr,
        )
    return Limits(most=most, most_per_address=max(1, most // _ADDRESS_SHARE))


def raise_file_limit() -> int:
    """Raises the soft limit of open files as far as the hard one allows; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return target
