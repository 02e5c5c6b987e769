"""Command `manage.py serve_web`: the web process of `make run`, `grove up` and production."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from webapp.http.server import serve
from webapp.operations.processes import name_connections
from webapp.operations.schema import refuse_newer_at_start


class Command(BaseCommand):
    help = "Serve pages, REST and the stream, with limits and deadlines on every connection."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument(
            "--port", type=int, default=settings.GROVE_PORT,
            help="0: one that is free, named in the first line of the output",
        )  # fmt: skip

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        name_connections("web")
        refuse_newer_at_start()
        with suppress(KeyboardInterrupt):
            sys.exit(serve(host, port))
