"""Tests that a socket's wait for the database can be cancelled at any moment."""

import asyncio

import pytest
from psycopg_pool import PoolTimeout

from webapp.telemetry.stream.hub import Hub

pytestmark = pytest.mark.django_db(transaction=True)
MOST_TURNS = 12
"""Turns of the event loop within which a returned connection reaches the task that waits for it."""


async def ended_as_its_connection_came(turns: int) -> bool:
    """Whether a task ends that is cancelled `turns` turns after a connection was given to it."""
    hub = Hub()
    await hub.pool.open()
    await hub.pool.resize(0, 1)  # no connection until the test releases it

    looked, never = asyncio.Event(), asyncio.Event()

    async def looks_again() -> None:
        while True:
            await hub.rows("SELECT %s", [1])
            looked.set()
            await never.wait()

    try:
        async with hub.pool.connection():
            task = asyncio.create_task(looks_again())
            while not hub.pool.get_stats().get("requests_waiting"):
                await asyncio.sleep(0.01)
        for _ in range(turns):
            await asyncio.sleep(0)
        looked.clear()
        task.cancel()
        went_on = asyncio.create_task(looked.wait())
        await asyncio.wait({task, went_on}, return_when=asyncio.FIRST_COMPLETED)
        ended = task.cancelled()
        for one in (task, went_on):
            one.cancel()  # again, so that the pool can close
        return ended
    finally:
        await hub.close()


async def ask_while_all_connections_are_lent() -> None:
    hub = Hub()
    await hub.pool.open()
    await hub.pool.resize(0, 1)
    try:
        async with hub.pool.connection():
            await hub.rows("SELECT %s", [1])
    finally:
        await hub.close()


def test_a_wait_for_a_connection_that_is_too_long_names_the_setting(monkeypatch, caplog):
    monkeypatch.setenv("GROVE_DATABASE_CONNECTION_SECONDS", "0.2")
    with pytest.raises(PoolTimeout):
        asyncio.run(ask_while_all_connections_are_lent())
    assert "no free connection to the database within 0.2 s; on a busy machine" in caplog.text
    assert "raise GROVE_DATABASE_CONNECTION_SECONDS or GROVE_PATIENCE" in caplog.text


@pytest.mark.parametrize("turns", range(MOST_TURNS))
def test_a_task_ends_though_its_connection_comes_as_it_is_cancelled(turns):
    assert asyncio.run(ended_as_its_connection_came(turns))
