"""How web and worker are started; the same commands serve a cluster's own process manager."""

from __future__ import annotations

import sys

from workers.settings import engine_command, runs_at_once

MAX_FRAME_BYTES = 65536
"""Most bytes of one inbound websocket frame."""
WEB_CLOSE_SECONDS = 3


def web_command(port: int) -> list[str]:
    """uvicorn on the loopback interface; it blocks on a full socket, which the stream needs."""
    return [
        *(sys.executable, "-m", "uvicorn", "webapp.asgi:application"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--no-access-log", "--log-level", "warning"),
        *("--ws-max-size", str(MAX_FRAME_BYTES)),
        *("--timeout-graceful-shutdown", str(WEB_CLOSE_SECONDS)),
    ]


def worker_command() -> list[str]:
    """A Celery worker with threads: each one only watches an engine, which is a process."""
    engine_command()  # what cannot be used is refused now, not by every run
    return [
        *(sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker"),
        *("--pool", "threads", "--concurrency", str(runs_at_once())),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        *("--loglevel", "INFO"),
    ]
