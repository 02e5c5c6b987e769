"""`manage.py upgrade`, `grove upgrade`: the schema of the database, to that of this program."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from webapp import __version__
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import HELD
from webapp.operations import schema
from workers.local.errors import StartError
from workers.local.reached import database_reached

PENDING, NEWER = 1, 2
"""Exit statuses of `--check`: this program would change the schema; it cannot use it."""


class Command(BaseCommand):
    help = "Migrate the database to this version; with --check, say what that would change."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="change nothing; status 1: migrations are pending, 2: the schema is newer",
        )

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        try:
            with database_reached():
                status = self._say() if check else self._migrate()
        except StartError as error:
            raise SystemExit(str(error)) from None
        except schema.NewerSchema as error:
            self.stdout.write(str(error))
            status = NEWER
        if status:
            raise SystemExit(status)

    def _say(self) -> int:
        applied, pending = schema.applied(), schema.pending()
        self.stdout.write(f"Grove {__version__} (web, worker and engine of this installation)")
        self.stdout.write(f"Postgres {_postgres()}")
        self.stdout.write(f"Schema: {len(applied)} migrations applied, {len(pending)} pending")
        schema.refuse_newer()
        for line in _changes(pending):
            self.stdout.write(line)
        if not pending:
            self.stdout.write("Nothing to do.")
            return 0
        if applied and (active := _active_runs()):
            self.stdout.write(f"{active} runs are active: their workers make checkpoints first.")
        self.stdout.write("Make a backup (grove backup FILE), stop web and workers, then upgrade.")
        return PENDING

    def _migrate(self) -> int:
        schema.refuse_newer()
        call_command("migrate", interactive=False, verbosity=1, stdout=self.stdout)
        return 0


def _changes(pending: list[schema.Migration]) -> Iterator[str]:
    """Yields what each migration does, in words."""
    migrations = MigrationLoader(None).disk_migrations
    for key in pending:
        yield f"  {key[0]}.{key[1]}"
        for operation in migrations[key].operations:
            yield f"    {operation.describe()}"


def _active_runs() -> int:
    """Returns the number of active runs. Only the column that every schema has is read."""
    return Run.objects.filter(state__in=HELD).values("state").count()


def _postgres() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return cursor.fetchone()[0]
