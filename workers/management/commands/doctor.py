"""`manage.py doctor`: whether this machine can serve Grove. A part of `grove doctor`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import BaseCommand

from webapp.client.doctor import FAILED, line_of
from workers.doctor import checks


class Command(BaseCommand):
    help = "Check the data directory, disk, Postgres, the broker and the port; 1 if one failed."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="a list, for machines")

    def handle(self, *args: Any, **options: Any) -> None:
        results = list(checks())
        if options["json"]:
            self.stdout.write(msgspec.json.encode(results).decode())
        else:
            for check in results:
                self.stdout.write(line_of(check))
        if any(check.status == FAILED for check in results):
            raise SystemExit(1)
