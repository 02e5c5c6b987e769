"""The database of this installation for a command that runs by itself.

Invariant: where the embedded server is used and nothing runs it, the command starts it, holds the
lock of the data directory meanwhile, and stops it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections

from workers.local.django_database import URL_FILE, switch_database
from workers.local.errors import StartError
from workers.local.lock import VarLock
from workers.local.postgres import EmbeddedPostgres


@contextmanager
def database_reached(*, alone: bool = False) -> Iterator[None]:
    """Runs its block with a database that answers; with `alone`, and an embedded server, only if no
    Grove runs on the data directory.

    Raises:
        StartError: Postgres did not start, or, with `alone`, a Grove is running.
    """
    if "DATABASE_URL" in os.environ:
        yield
        return
    lock = VarLock(settings.GROVE_VAR)
    try:
        lock.take()
    except StartError:
        if alone:
            raise
        yield  # the holder of the lock runs the server
        return
    lock.note("the command line")
    postgres = EmbeddedPostgres(settings.GROVE_VAR / "postgres")
    try:
        switch_database(postgres.start(), settings.GROVE_VAR)
        yield
    finally:
        connections.close_all()
        postgres.stop()
        (settings.GROVE_VAR / URL_FILE).unlink(missing_ok=True)
        lock.release()
