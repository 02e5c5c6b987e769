"""The stack on which the page is measured: a Postgres and a uvicorn of its own, and a Chromium.

Invariant: on exit from the block all processes that it started have ended, and its files are
deleted.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from benchmarks.ui_log import sample_of_long_log
from tests.helpers.chromium import PageErrors, chromium
from tests.helpers.site import SampleRun, Server
from workers.local.postgres import EmbeddedPostgres

VIEWPORT = {"width": 1600, "height": 1000}


@dataclass
class Site:
    browser: Browser
    server: Server
    versions: dict[str, Any]

    def run(self, name: str) -> SampleRun:
        """Returns a started run without events."""
        return SampleRun(sample_of_long_log(), name)

    @contextmanager
    def opened(self, run: SampleRun, address: str = "") -> Iterator[Page]:
        """Opens the run's page, or another address of its site, in a new window.

        Raises:
            RuntimeError: the page had an error, violated its policy or contacted a foreign host.
        """
        context = self.browser.new_context(viewport=VIEWPORT, base_url=self.server.url)
        page, errors = context.new_page(), PageErrors()
        errors.watch(page, self.server.url)
        page.goto(run.sign_in_path().split("?")[0])
        page.wait_for_timeout(1000)  # the start of a window keeps the browser busy
        page.goto(address or f"/runs/{run.run.pk}/", wait_until="commit")
        try:
            yield page
        finally:
            context.close()
        if errors.recorded:
            raise RuntimeError(f"the page of {run.run.experiment.name}: {errors.recorded[0]}")


@contextmanager
def site() -> Iterator[Site]:
    """Runs the stack; raises `FileNotFoundError` if there is no Chromium."""
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        var = Path(directory)
        var.chmod(0o755)  # Postgres may run as another account
        database = EmbeddedPostgres(var / "postgres")
        try:
            yield from _served(var, database.start(), browser)
        finally:
            database.stop()


def _served(var: Path, database_url: str, browser: Browser) -> Iterator[Site]:
    os.environ |= {"GROVE_VAR": str(var), "DATABASE_URL": database_url}
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.config.settings"
    # Playwright runs an event loop in this thread, which Django mistakes for async code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    import django
    from django.core.management import call_command
    from django.db import connection

    django.setup()
    call_command("migrate", verbosity=0)
    server = Server(var, database_url)
    server.start()
    try:
        postgres = str(connection.cursor().execute("SHOW server_version").fetchone()[0])
        versions = {"python": platform.python_version(), "django": django.__version__}
        yield Site(browser, server, {**versions, "postgres": postgres})
    finally:
        connection.close()
        server.kill()
