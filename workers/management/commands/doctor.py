"""`manage.py doctor`: whether this machine can serve Grove. A part of `grove doctor`."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from workers.doctor import FAILED, checks


class Command(BaseCommand):
    help = "Check the data directory, disk, Postgres, the broker and the port; 1 if one failed."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="a list, for machines")

    def handle(self, *args: Any, **options: Any) -> None:
        found = list(checks())
        if options["json"]:
            self.stdout.write(json.dumps([asdict(check) for check in found]))
        else:
            for check in found:
                self.stdout.write(f"{check.status:9}{check.name}: {check.text}")
                if check.remedy:
                    self.stdout.write(f"{'':9}{check.remedy}")
        if any(check.status == FAILED for check in found):
            raise SystemExit(1)
