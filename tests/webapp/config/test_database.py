"""Tests of the pool of database connections: an outage is said soon, a busy pool is waited for."""

from __future__ import annotations

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from tests.helpers.ports import a_port
from webapp.config.database.base import Pool

HOUR = 3600.0
"""A wait that no test survives: what returns did not wait."""


def a_pool(url, **options):
    return Pool(url, min_size=0, open=True, reconnect_timeout=1.0, **options)


@pytest.fixture
def away():
    with a_pool(f"postgresql://x@127.0.0.1:{a_port()}/x", max_size=1, timeout=HOUR) as pool:
        yield pool


@pytest.fixture
def one(postgres_url):
    """A pool of one connection, which is in use."""
    with a_pool(postgres_url, max_size=1, timeout=HOUR) as pool:
        taken = pool.getconn()
        yield pool
        pool.putconn(taken)


def test_a_server_that_is_away_is_not_waited_for(away):
    for _ in range(2):
        with pytest.raises(psycopg.OperationalError) as error:
            away.getconn()
        assert not isinstance(error.value, PoolTimeout) and "refused" in str(error.value)


def test_a_busy_pool_of_a_server_that_answers_is_waited_for(one):
    with pytest.raises(PoolTimeout):
        one.getconn(1.2)
    with pytest.raises(PoolTimeout):
        one.getconn(0.1)


def test_a_site_uses_this_pool(db):
    from django.db import connection

    assert type(connection.pool) is Pool
    assert connection.pool.get_stats()["pool_max"] == 16
