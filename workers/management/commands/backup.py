"""`manage.py backup`, `grove backup`: one file with all of this installation."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.disk import is_full
from workers.backup.errors import BackupError
from workers.backup.making import make
from workers.local.errors import StartError
from workers.local.reached import database_reached

SHOWN = 10


class Command(BaseCommand):
    help = "Write database, artifacts and runs to one file, while everything goes on."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="a new file")
        parser.add_argument(
            "--secrets", action="store_true", help="include the secret key and sessions"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"].absolute()
        try:
            with database_reached():
                made = make(path, secrets=options["secrets"], report=self.stdout.write)
        except (BackupError, StartError) as error:
            raise SystemExit(str(error)) from None
        except OSError as error:
            full = (
                f"No space is left in {path.parent}, or in {settings.GROVE_VAR}: free some, or "
                "name a file on another disk. Nothing was kept of it."
            )
            raise SystemExit(
                f"{path} was not written. {full if is_full(error) else error}"
            ) from None
        for one in made.manifest.absent[:SHOWN]:
            self.stdout.write(f"absent: {one.path}: {one.reason}")
        if more := len(made.manifest.absent) - SHOWN:
            self.stdout.write(f"absent: {more} more; see the manifest") if more > 0 else None
        for sentence in made.manifest.left_out:
            self.stdout.write(f"left out: {sentence}")
        rows, files = sum(made.manifest.tables.values()), len(made.manifest.files)
        self.stdout.write(
            f"{path}: {rows} rows, {files} files, {made.bytes / (1 << 20):.1f} MiB. Anyone who "
            "has it can read all of it."
        )
