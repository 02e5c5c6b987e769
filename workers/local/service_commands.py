"""Commands that start web and worker; a cluster's own process manager can use the same ones."""

from __future__ import annotations

import sys

from workers.settings import engine_command, metrics_address, runs_at_once


def web_command(port: int) -> list[str]:
    """Returns the command of the web process on the loopback interface."""
    return [
        *(sys.executable, "-m", "webapp.manage", "serve_web"),
        *("--host", "127.0.0.1", "--port", str(port)),
    ]


def worker_command() -> list[str]:
    """Returns the command of a Celery worker with threads: each only watches an engine process."""
    engine_command()  # an unusable value is refused now, not by every run
    metrics_address()
    return [
        *(sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker"),
        *("--pool", "threads", "--concurrency", str(runs_at_once())),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        *("--loglevel", "INFO"),
    ]
