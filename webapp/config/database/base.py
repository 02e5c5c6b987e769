"""Django's Postgres backend, whose pool says soon that the server is away.

Invariant: a request waits `GROVE_DATABASE_CONNECTION_SECONDS` only for connections that others use;
for a server that refuses connections it waits `ATTENTION_SECONDS`, and for one that does not answer
at all `PROBE_SECONDS` more.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool, PoolTimeout

ATTENTION_SECONDS = 1.0
"""Wait for a connection after which the server itself is tried."""
PROBE_SECONDS = 2
"""Deadline of that connection; libpq has none that is shorter."""
_TOO_MANY = ("53300", "53400")
"""SQLSTATE of a server that is there and has no connection left."""


class Pool(ConnectionPool):
    """Pool of connections; raises `psycopg.OperationalError` once the server is away."""

    def getconn(self, timeout: float | None = None) -> Any:
        """Returns a connection. Raises `PoolTimeout` if all were in use for `timeout` seconds."""
        whole = self.timeout if timeout is None else timeout
        attention = min(ATTENTION_SECONDS, whole)
        try:
            return super().getconn(attention)
        except PoolTimeout:
            self._require_server()
            if whole <= attention:
                raise
        return super().getconn(whole - attention)

    def _require_server(self) -> None:
        kwargs = self.kwargs() if callable(self.kwargs) else self.kwargs
        given: dict[str, Any] = {**(kwargs or {}), "connect_timeout": PROBE_SECONDS}
        conninfo = self.conninfo() if callable(self.conninfo) else self.conninfo
        try:
            psycopg.connect(conninfo, **given).close()
        except psycopg.OperationalError as error:
            if error.sqlstate not in _TOO_MANY:
                raise


class DatabaseWrapper(base.DatabaseWrapper):
    """Connections of one thread."""

    @property
    def pool(self) -> Any:
        """The process's pool; None without one."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias != base.NO_DB_ALIAS and options and self.alias not in self._connection_pools:
            made = Pool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                open=False,
                configure=self._configure_connection,
                check=Pool.check_connection if self.settings_dict["CONN_HEALTH_CHECKS"] else None,
                **options,
            )
            self._connection_pools.setdefault(self.alias, made)
        return super().pool
