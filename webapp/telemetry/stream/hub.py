"""Hub that wakes the watchers of runs and of users' access: one LISTEN connection per web process,
for all sockets.

Invariant: a run's watchers are woken at most a poll (`POLL_SECONDS`) after its row changed, whether
or not a notification arrived. A wake-up carries no data: the watcher reads from its own cursor.
Waits: for notifications (woken by Postgres), for the poll (1 s), for a lost connection (0.2 to
5 s, then all watchers are woken).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.db import connections
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from engine.config.deadlines import DATABASE_CONNECTION
from webapp.accounts.services import ACCESS_CHANNEL
from webapp.experiments.services import CHANNEL

POLL_SECONDS = 1.0
_BACKOFF_SECONDS = (0.2, 5.0)
_POOL_SIZE = 8

DatabaseTrouble = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)

logger = logging.getLogger(__name__)


def connection_settings() -> dict[str, Any]:
    """Returns psycopg's connection settings of the database that Django uses."""
    settings = connections["default"].settings_dict
    named = {
        "dbname": settings["NAME"],
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "host": settings["HOST"],
        "port": settings["PORT"],
    }
    options = {name: value for name, value in settings["OPTIONS"].items() if name != "pool"}
    return {**options, **{name: value for name, value in named.items() if value}}


class Hub:
    """Hub of one event loop: create, `start` and `close` it there."""

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._poll_seconds = poll_seconds
        self._settings = connection_settings()
        self._watchers: dict[uuid.UUID, set[asyncio.Event]] = defaultdict(set)
        self._versions: dict[uuid.UUID, str] = {}
        self._access: dict[int, set[asyncio.Event]] = defaultdict(set)
        self._tasks: list[asyncio.Task[None]] = []
        # Connections are lent for one query at a time: an idle socket holds none.
        self.pool = AsyncConnectionPool(
            kwargs={**self._settings, "autocommit": True},
            min_size=0,
            max_size=_POOL_SIZE,
            timeout=DATABASE_CONNECTION.seconds,
            open=False,
        )

    async def start(self) -> None:
        await self.pool.open()
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._poll())]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.pool.close()

    async def rows(self, query: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """Returns the rows of a query. Raises the exceptions of `DatabaseTrouble`."""
        try:
            return await self._rows(query, values)
        except PoolTimeout:
            logger.warning(
                "no free connection to the database within %g s; %s",
                self.pool.timeout,
                DATABASE_CONNECTION.remedy,
            )
            raise

    async def _rows(self, query: str, values: list[Any]) -> list[tuple[Any, ...]]:
        async with self.pool.connection() as connection:
            # Before Python 3.12 the pool's own wait loses a cancellation that arrives just as the
            # connection does; the socket would never end.
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError
            cursor = await connection.execute(query, values)
            return await cursor.fetchall()

    @contextmanager
    def watch(self, run_id: uuid.UUID) -> Iterator[asyncio.Event]:
        """Yields an event that is set at the start, and whenever the run may have changed."""
        news = asyncio.Event()
        news.set()
        self._watchers[run_id].add(news)
        try:
            yield news
        finally:
            self._watchers[run_id].discard(news)
            if not self._watchers[run_id]:
                del self._watchers[run_id]
                self._versions.pop(run_id, None)

    @contextmanager
    def watch_access(self, user_id: int) -> Iterator[asyncio.Event]:
        """Yields an event that is set whenever the user may see less than before."""
        news = asyncio.Event()
        self._access[user_id].add(news)
        try:
            yield news
        finally:
            self._access[user_id].discard(news)
            if not self._access[user_id]:
                del self._access[user_id]

    def _wake(self, run_id: uuid.UUID) -> None:
        for news in self._watchers.get(run_id, ()):
            news.set()

    def _hear(self, notification: psycopg.Notify) -> None:
        with suppress(ValueError):
            if notification.channel == CHANNEL:
                self._wake(uuid.UUID(notification.payload))
            else:
                for news in self._access.get(int(notification.payload), ()):
                    news.set()

    def _wake_all(self) -> None:
        for events in (*self._watchers.values(), *self._access.values()):
            for news in events:
                news.set()

    async def _listen(self) -> None:
        wait = _BACKOFF_SECONDS[0]
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    **self._settings, autocommit=True
                ) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    await connection.execute(f"LISTEN {ACCESS_CHANNEL}")
                    wait = _BACKOFF_SECONDS[0]
                    self._wake_all()
                    async for notification in connection.notifies():
                        self._hear(notification)
            except DatabaseTrouble as error:
                logger.warning("no notifications (%s); polling, and trying again", error)
            await asyncio.sleep(wait)
            wait = min(_BACKOFF_SECONDS[1], wait * 2)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            if self._watchers:
                with suppress(*DatabaseTrouble):
                    await self._wake_changed()

    async def _wake_changed(self) -> None:
        # xmin names the transaction that last wrote the row: it changes with every change.
        query = "SELECT id, xmin::text FROM experiments_run WHERE id = ANY(%s)"
        for run_id, version in await self.rows(query, [list(self._watchers)]):
            if run_id in self._watchers and self._versions.get(run_id) != version:
                self._versions[run_id] = version
                self._wake(run_id)
