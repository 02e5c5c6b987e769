"""Slow queries: those that run now, and the slowest by mean where Postgres counts them.

Invariant: a query's text is cut, and shown to operators alone: it may hold what people wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import Error, connection, transaction

SLOW_SECONDS = 1.0
SHOWN = 10
LONGEST_TEXT = 300
_RUNNING = """
    SELECT extract(epoch FROM clock_timestamp() - query_start)::float8, 1, query, application_name
    FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
      AND backend_type = 'client backend' AND clock_timestamp() - query_start > %s * interval '1 s'
    ORDER BY 1 DESC LIMIT %s
"""
_STATEMENTS = """
    SELECT mean_exec_time / 1000, calls, query, ''
    FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid
    WHERE datname = current_database() ORDER BY 1 DESC LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class SlowQuery:
    seconds: float
    """Since it began; of a counted one the mean of its calls."""
    calls: int
    text: str
    process: str
    """Name of the connection that runs it; empty of a counted one."""


def running() -> list[SlowQuery]:
    """The queries that have run for `SLOW_SECONDS`, the longest first."""
    return _read(_RUNNING, [SLOW_SECONDS, SHOWN])


def counted() -> list[SlowQuery] | None:
    """The slowest queries by mean; None where the extension pg_stat_statements does not work."""
    try:
        with transaction.atomic():
            return _read(_STATEMENTS, [SHOWN])
    except Error:
        return None


def _read(statement: str, parameters: list[float | int]) -> list[SlowQuery]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return [
            SlowQuery(seconds, calls, " ".join(text.split())[:LONGEST_TEXT], process)
            for seconds, calls, text, process in cursor.fetchall()
        ]
