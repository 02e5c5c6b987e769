"""`manage.py restore`, `grove restore`: a backup into an empty installation."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.config.installation import UP
from webapp.disk import is_full
from workers.backup.errors import BackupError
from workers.backup.restoring import checked, restore
from workers.local.errors import StartError
from workers.local.reached import database_reached


class Command(BaseCommand):
    help = "Restore a backup into an empty installation."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="as `backup` wrote it")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"].absolute()
        try:
            with checked(path, report=self.stdout.write) as backup, database_reached(alone=True):
                restored = restore(backup, report=self.stdout.write)
        except (BackupError, StartError) as error:
            raise SystemExit(str(error)) from None
        except OSError as error:
            full = (
                f"No space is left in {settings.GROVE_VAR}, or where artifacts and the database "
                "are: free some. What was restored of it was removed again."
            )
            raise SystemExit(
                f"{path} was not restored. {full if is_full(error) else error}"
            ) from None
        manifest = restored.manifest
        if restored.interrupted:
            self.stdout.write(f"{restored.interrupted} runs were active: they can be resumed.")
        if not restored.same_key:
            self.stdout.write(
                "This installation has another secret key: API tokens, share links, sessions and "
                "authenticator apps of the backup are not valid here. With the old key in "
                "GROVE_SECRET_KEY they are."
            )
        rows = sum(manifest.tables.values())
        self.stdout.write(
            f"Restored {rows} rows and {len(manifest.files)} files of {manifest.created}. "
            f"Start it: {UP}"
        )
