"""Checks of whether this process can serve: each named, each with a deadline.

Invariants: a check that hangs delays the answer by `deadlines.READY` at most, and no second one is
started alongside it. Strangers may ask, so that an answer names what fails and never why, which the
log says.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from django.conf import settings
from django.db import connection
from kombu import Connection

from engine.config.deadlines import READY
from webapp.artifacts import store
from webapp.operations import schema

logger = logging.getLogger(__name__)

KEPT_SECONDS = 2.0
"""For so long an answer is given again: load balancers, and strangers, ask often."""
MIN_FREE_BYTES = 256 << 20
OK, FAILING = "ok", "failing"


class CheckFailed(RuntimeError):
    """Raised by a check; says why, for the log."""


def database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def migrations() -> None:
    if pending := schema.pending():
        raise CheckFailed(f"{len(pending)} migrations are pending, the first is {pending[0]}")
    schema.refuse_newer()


def broker() -> None:
    if settings.BROKER_URL.startswith("filesystem"):
        _writable(Path(settings.BROKER_DIR))
        return
    seconds = READY.seconds
    with Connection(settings.BROKER_URL, connect_timeout=seconds) as broker_connection:
        broker_connection.ensure_connection(max_retries=1, timeout=seconds)


def artifacts() -> None:
    try:
        directory = Path(store.storage().path(""))
    except NotImplementedError:  # a bucket: a request that only a working one answers
        store.storage().exists(store.name_of("0" * 64))
    else:
        _writable(directory)
        _has_room(directory)


def disk() -> None:
    _writable(Path(settings.GROVE_VAR))
    _has_room(Path(settings.GROVE_VAR))


def _writable(directory: Path) -> None:
    """Raises unless the directory, or where it would be created, can be written."""
    existing = _existing(directory)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise CheckFailed(f"{existing} cannot be written")


def _has_room(directory: Path) -> None:
    """Raises unless its disk, which may be one of its own, has room."""
    free = shutil.disk_usage(_existing(directory)).free
    if free < MIN_FREE_BYTES:
        raise CheckFailed(f"{directory} has {free >> 20} MiB free")


def _existing(directory: Path) -> Path:
    return next(path for path in (directory, *directory.parents) if path.exists())


CHECKS: dict[str, Callable[[], None]] = {
    "database": database,
    "migrations": migrations,
    "broker": broker,
    "artifacts": artifacts,
    "disk": disk,
}


class Readiness:
    """The checks of one process."""

    def __init__(self, checks: dict[str, Callable[[], None]], kept_seconds: float = KEPT_SECONDS):
        self._checks, self._kept_seconds = checks, kept_seconds
        self._threads = ThreadPoolExecutor(len(checks), "readiness")
        self._pending: dict[str, Future[None]] = {}
        self._lock = threading.Lock()
        self._answered = float("-inf")
        self._answer: dict[str, str] = {}

    def answer(self) -> dict[str, str]:
        """Returns `ok` or `failing` by check."""
        with self._lock:
            if time.monotonic() - self._answered >= self._kept_seconds:
                self._answer = self._checked()
                self._answered = time.monotonic()
            return self._answer

    def _checked(self) -> dict[str, str]:
        for name, check in self._checks.items():
            if name not in self._pending:
                self._pending[name] = self._threads.submit(_alone, check)
        wait(self._pending.values(), READY.seconds)
        return {name: self._outcome(name) for name in self._checks}

    def _outcome(self, name: str) -> str:
        future = self._pending[name]
        if not future.done():
            logger.warning("not ready: %s: %s", name, READY.passed)
            return FAILING
        del self._pending[name]
        if error := future.exception():
            logger.warning("not ready: %s: %s: %s", name, type(error).__name__, error)
            return FAILING
        return OK


def _alone(check: Callable[[], None]) -> None:
    """Runs a check in its thread and returns the thread's connection to the pool."""
    try:
        check()
    finally:
        connection.close()


readiness = Readiness(CHECKS)
