"""Dump and restoration of the database by Postgres' own programs, from the embedded server's wheel.

Invariants: a dump shows the database at one moment, that of `Snapshot`; a restoration is one
transaction. No password is on a command line. Whatever a program does not finish within its
deadline is ended.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import connection, transaction
from psycopg.conninfo import make_conninfo

from engine.config.deadlines import BACKUP, REMOVALS_HOLD
from webapp.artifacts.store import hold_removals
from workers.backup.archive import BLOCK
from workers.backup.errors import BackupError
from workers.local.postgres import binaries_directory

NEVER_DUMPED = ("accounts_cache", "exports_export")
"""Tables whose rows stay behind: counts of the last minutes, and exports, which expire in days and
whose files stay behind as well."""
SESSIONS = "django_session"
"""Its keys are what a signed-in browser sends: a secret."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The database at one moment. `name`: by which pg_dump joins it."""

    name: str
    postgres: int
    migrations: list[tuple[str, str]]


@contextmanager
def artifacts_held() -> Iterator[None]:
    """Keeps every artifact in the store for the duration.

    Raises:
        BackupError: another backup is being made.
    """
    with hold_removals(REMOVALS_HOLD.seconds) as held:
        if not held:
            raise BackupError(
                f"Nothing was written: {REMOVALS_HOLD.passed}. Try again when it has ended."
            )
        yield


@contextmanager
def snapshot() -> Iterator[Snapshot]:
    """Shows the database as of now to the queries within it, and to `dumped`."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot(), current_setting('server_version_num')")
        name, version = cursor.fetchone()
        cursor.execute("SELECT app, name FROM django_migrations ORDER BY id")
        yield Snapshot(name, int(version) // 10_000, cursor.fetchall())


def dumped(snap: Snapshot, *, without: tuple[str, ...]) -> Iterator[bytes]:
    """Yields a dump as of the snapshot; of the tables `without` the definition alone.

    Raises:
        BackupError: pg_dump failed; says why.
    """
    command = [
        *("pg_dump", "--format=custom", "--compress=gzip:1", "--no-owner", "--no-privileges"),
        f"--snapshot={snap.name}",
        *(f"--exclude-table-data=public.{table}" for table in without),
    ]
    with _program(command, stdout=subprocess.PIPE) as process:
        output = process.stdout
        assert output is not None
        while block := output.read(BLOCK):
            yield block


def restored(dump: Path) -> None:
    """Restores a dump into the database, which has no tables, in one transaction.

    Raises:
        BackupError: pg_restore failed, and nothing was changed; says why.
    """
    options = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
    with _program(["pg_restore", *options, str(dump)]):
        pass


def counted_rows(without: tuple[str, ...] = ()) -> dict[str, int]:
    """Returns the number of rows of every table; 0 for those `without`."""
    with connection.cursor() as cursor:
        counts = {}
        for table in sorted(table_names()):
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
            counts[table] = 0 if table in without else cursor.fetchone()[0]
    return counts


def table_names() -> list[str]:
    """Returns the tables of the database, whether they are Grove's or not."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        return [name for (name,) in cursor.fetchall()]


def function_names() -> list[str]:
    """Returns the functions of the schema `public`, as SQL names them, without those of extensions,
    which managed servers have in new databases."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT oid::regprocedure::text FROM pg_proc "
            "WHERE pronamespace = to_regnamespace('public') AND NOT EXISTS "
            "(SELECT 1 FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')"
        )
        return [name for (name,) in cursor.fetchall()]


def server_version() -> int:
    """Returns the major version of the database server."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')")
        return int(cursor.fetchone()[0]) // 10_000


def emptied() -> None:
    """Removes all that a restoration made in a database without tables and functions: a schema
    consists of both, and what belongs to them."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table in table_names():
            cursor.execute(f"DROP TABLE IF EXISTS {connection.ops.quote_name(table)} CASCADE")
        for function in function_names():
            cursor.execute(f"DROP FUNCTION IF EXISTS {function} CASCADE")


@contextmanager
def _program(command: list[str], stdout: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program of Postgres on the site's database; raises `BackupError` if it fails."""
    program = str(binaries_directory() / command[0])
    where, password = address()
    process = subprocess.Popen(
        [program, f"--dbname={where}", *command[1:]],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdout=stdout,
        env={**os.environ, **password},
    )
    errors = process.stderr
    assert errors is not None
    said: list[bytes] = []
    reader = threading.Thread(target=lambda: said.extend(errors), daemon=True)
    reader.start()  # a full pipe of messages must not stop the program
    passed = threading.Event()

    def end() -> None:
        passed.set()
        process.kill()

    deadline = threading.Timer(BACKUP.seconds, end)
    deadline.daemon = True
    deadline.start()
    try:
        yield process
        code = process.wait()
    finally:
        deadline.cancel()
        process.kill()
        process.wait()
        reader.join(10)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if code != 0 and passed.is_set():
        raise BackupError(f"{command[0]} was ended: {BACKUP.passed}")
    if code != 0:
        lines = b"".join(said).decode(errors="replace").strip().splitlines()
        raise BackupError(f"{command[0]} failed: {lines[0] if lines else f'exit status {code}'}")


def address() -> tuple[str, dict[str, str]]:
    """Returns where the database is, without the password, and the password as an environment."""
    given = connection.settings_dict
    options = {key: value for key, value in given["OPTIONS"].items() if key != "pool"}
    named = {"dbname": "NAME", "user": "USER", "host": "HOST", "port": "PORT"}
    parts = {**options, **{key: given[name] for key, name in named.items() if given[name]}}
    return make_conninfo("", **parts), {"PGPASSWORD": given["PASSWORD"] or ""}
