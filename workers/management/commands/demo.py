"""`manage.py demo`: the demo job through the whole stack, with its numbers in one JSON object."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections, connection

from engine.events.log import EventReader
from engine.events.vocabulary import Event
from webapp.config.installation import default_var
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Run
from workers.demo.client import DemoClient
from workers.demo.summary import DemoSummary
from workers.local.endings import ended_in_order
from workers.local.progress import Progress
from workers.local.supervisor import Supervisor
from workers.management.commands.up import DEMO_RECIPE
from workers.runs.run_files import run_directory
from workers.versions import versions

REPORT_SECONDS = 10.0
"""How often progress is reported."""


class Command(BaseCommand):
    help = "Run the demo job through the whole stack and write its numbers as JSON."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--headless", action="store_true", help="print no sign-in link")
        parser.add_argument("--minutes", type=float, default=6.0, help="of training (6)")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--json", type=Path, help="file for the numbers")
        parser.add_argument("--var", type=Path, help="data directory (var/demo-SEED-TIME)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["json"] and not options["json"].resolve().parent.is_dir():
            raise CommandError(f"--json {options['json']}: make its directory first")
        _move_to(options["var"], options["seed"])
        demo = Demo(options)
        with ended_in_order(demo.supervisor, "The demo did not finish", status_of_signal=130):
            demo.run()


_OF_A_SITE = {"GROVE_HTTPS", "GROVE_ALLOWED_HOSTS", "GROVE_TRUSTED_PROXIES"}


def _move_to(var: Path | None, seed: int) -> None:
    """Restarts this process with a data directory, and a port, of the demo's own.

    Settings were read from the environment before this command ran, hence the restart.
    """
    if "GROVE_DEMO" in os.environ:
        return
    stamp = time.strftime("%Y%m%d-%H%M%S")
    var = var or default_var(os.environ) / f"demo-{seed}-{stamp}"
    port = os.environ.get("GROVE_PORT", "0")
    environment = {"GROVE_VAR": str(var.resolve()), "GROVE_PORT": port, "GROVE_DEMO": "1"}
    # It is a site of this machine alone, whatever the one is that the variables describe.
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_A_SITE}
    program = [sys.executable, *sys.orig_argv[1:]]
    os.execve(sys.executable, program, {**inherited, **environment})


class Demo:
    """One demo: the services, the run, and the client that watches it from a second thread."""

    def __init__(self, options: dict[str, Any]):
        self.options = options
        self.progress = Progress()
        self.supervisor = Supervisor(self.progress)
        self.summary = DemoSummary()
        self._started_at = time.monotonic()
        self._ready_at = 0.0
        self._reported_at = 0.0
        self._error: BaseException | None = None

    def run(self) -> None:
        """Runs the demo and writes the JSON; raises `SystemExit` if the run did not finish."""
        self.supervisor.start()
        self._ready_at = time.monotonic()
        self.progress.say(f"Grove is at {self.supervisor.address}")
        if not self.options["headless"]:
            self.progress.say(f"Sign in (works once): {self.supervisor.sign_in_link()}")
        run = self._launch()
        client = DemoClient(self.supervisor.address, self._new_link, str(run.pk), self._on_event)
        watcher = threading.Thread(target=self._follow, args=[client], daemon=True)
        watcher.start()
        self.supervisor.serve(until=lambda: not watcher.is_alive())
        if self._error is not None:
            raise self._error
        self._report(run, client)

    def _new_link(self) -> str:
        """Returns a link for the watcher's thread, whose connection may be to a killed database."""
        close_old_connections()
        return self.supervisor.sign_in_link()

    def _launch(self) -> Run:
        overrides = {
            "seed": self.options["seed"],
            "training.minutes": self.options["minutes"],
        }
        name = f"Demo, seed {self.options['seed']}"
        with self.supervisor.step("Launching the demo experiment"):
            return create_experiment_with_run(
                self.supervisor.project, self.supervisor.user, DEMO_RECIPE, overrides, name
            )

    def _follow(self, client: DemoClient) -> None:
        try:
            asyncio.run(client.follow())
        except BaseException as error:
            self._error = error

    def _on_event(self, event: Event) -> None:
        self.summary.add(event)
        payload = event.payload
        if event.kind == "step.end" and time.monotonic() - self._reported_at > REPORT_SECONDS:
            self._reported_at = time.monotonic()
            self.progress.say(
                f"Step {payload['step']}: reward {payload['reward']:.2f}, "
                f"solved {payload['solved']:.2f}, {payload['training_seconds']:.0f} s of training"
            )
        elif event.kind == "eval.result":
            scores = ", ".join(f"{name} {score:.3f}" for name, score in payload["agents"].items())
            self.progress.say(f"Pass@1 on {payload['split']}, step {payload['step']}: {scores}")
        elif event.kind in ("run.state", "error"):
            self.progress.say(" ".join(str(value) for value in payload.values() if value))

    def _report(self, run: Run, client: DemoClient) -> None:
        # Postgres may have been restarted since this thread's last query.
        connection.close()
        run.refresh_from_db()
        first = client.first_node_at
        result = {
            "seconds_to_first_node": round(first - self._ready_at, 2) if first else None,
            "seconds_total": round(time.monotonic() - self._started_at, 2),
            **self.summary.report(),
            "events": {
                "emitted": last_seq(run_directory(run.pk)),
                "stored": run.events.count(),
                "delivered": client.delivered,
                "gaps": client.gaps,
                "doubles": client.doubles,
            },
            "seed": self.options["seed"],
            "versions": versions(postgres_version()),
        }
        if self.options["json"]:
            self.options["json"].write_text(json.dumps(result, indent=1) + "\n")
        self.progress.say(json.dumps(result))
        if run.state != "finished":
            self.progress.say(f"The run {run.state}: {run.error or 'it was stopped'}")
            raise SystemExit(1)


def last_seq(run_dir: Path) -> int:
    """Returns the seq of the last event in the engine's own log; 0 if there is none."""
    reader, last = EventReader(run_dir), 0
    while batch := reader.read():
        last = batch[-1].seq
    return last


def postgres_version() -> str:
    """Returns the version that the server reports."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return cursor.fetchone()[0]
