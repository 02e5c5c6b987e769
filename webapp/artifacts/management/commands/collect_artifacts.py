"""Command `manage.py collect_artifacts`: garbage collection now; workers run it every hour."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandParser

from webapp.artifacts.collecting import GRACE, collect


class Command(BaseCommand):
    help = "Remove expired uploads and artifacts that nothing refers to."

    def add_arguments(self, parser: CommandParser) -> None:
        hours = GRACE.total_seconds() / 3600
        parser.add_argument(
            "--grace-hours", type=float, default=hours, help="what is younger stays (default: 24)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        collected = collect(timedelta(hours=options["grace_hours"]))
        self.stdout.write(msgspec.json.encode(asdict(collected)).decode())
