"""How web and worker are started; the same commands serve a cluster's own process manager."""

from __future__ import annotations

import sys

from workers.settings import engine_command, runs_at_once


def web_command(port: int) -> list[str]:
    """The web process on the loopback interface."""
    return [
        *(sys.executable, "-m", "webapp.manage", "serve_web"),
        *("--host", "127.0.0.1", "--port", str(port)),
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
