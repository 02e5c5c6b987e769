"""Schema of the database compared with the one that this program knows.

Invariant: a program never works on a schema that it does not know: `refuse_newer` says so before a
process serves or takes a run.
"""

from __future__ import annotations

from functools import cache

from django.db import OperationalError, ProgrammingError, connection
from django.db.migrations.loader import MigrationLoader

from webapp import __version__

Migration = tuple[str, str]
"""App and name."""


class NewerSchema(RuntimeError):
    """Raised if the database was migrated by a newer version of Grove. `str()` is both
    sentences."""

    def __init__(self, app: str, name: str):
        self.sentence = (
            f"The database has a newer schema than Grove {__version__} knows ({app}.{name})."
        )
        self.remedy = "Install the version that migrated it, or restore a backup made before."
        super().__init__(f"{self.sentence} {self.remedy}")


@cache
def known() -> frozenset[Migration]:
    """Returns the migrations of this program, its packages' among them."""
    return frozenset(MigrationLoader(None).disk_migrations)


def applied() -> frozenset[Migration]:
    """Returns the migrations that the database has; none if it was never migrated."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT app, name FROM django_migrations")
            return frozenset(cursor.fetchall())
    except ProgrammingError:
        return frozenset()


def pending() -> list[Migration]:
    """Returns the migrations that the database lacks, sorted."""
    return sorted(known() - applied())


def unknown(migrations: frozenset[Migration] | None = None) -> list[Migration]:
    """Returns those of the migrations, by default the database's, that this program lacks, sorted.

    Migrations of apps that it does not have at all do not count: they are another program's.
    """
    apps = {app for app, _ in known()}
    of_database = applied() if migrations is None else migrations
    return sorted(one for one in of_database - known() if one[0] in apps)


def refuse_newer() -> None:
    """Raises `NewerSchema` if the database has migrations that this program does not know."""
    if newer := unknown():
        raise NewerSchema(*newer[-1])


def refuse_newer_at_start() -> None:
    """As `refuse_newer`, for a process that may start before its database does: then it says
    nothing, and readiness does (`operations.readiness`).

    Raises:
        SystemExit: with the sentence.
    """
    try:
        refuse_newer()
    except NewerSchema as error:
        raise SystemExit(str(error)) from None
    except OperationalError:
        pass
    finally:
        connection.close()
