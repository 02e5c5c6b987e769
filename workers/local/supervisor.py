"""Supervisor of all services of one machine: starts them, restarts them, ends them in order.

Invariants:
- One supervisor per `var` directory (a lock), and no process that it starts outlives it: children
  get a signal from the kernel when it dies; what a worker's engine started dies with the engine.
- They end in this order: web, worker (its engines make checkpoints), Postgres.

Everything here runs in the main thread, because a child dies with the thread that started it.
`serve` waits for a signal to end, for a child that died, and for nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import FrameType

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import Error, connection

from engine.config.deadlines import ENGINE_STOP, KILL, WEB_CLOSE, WEB_START
from engine.policy.starters import STARTERS, starter_directory
from webapp.accounts.models import User
from webapp.accounts.services import create_sign_in_link
from webapp.config.addresses import site_address
from webapp.config.installation import UP
from webapp.experiments.scheduling.leases import release_all
from webapp.operations import schema
from webapp.projects.models import Project
from webapp.projects.services import ensure_demo
from webapp.registry.services import register_starters
from workers.local.django_database import URL_FILE, switch_database
from workers.local.errors import StartError
from workers.local.health import health
from workers.local.lock import VarLock, take_port
from workers.local.postgres import EmbeddedPostgres
from workers.local.progress import Progress
from workers.local.service import Service
from workers.local.service_commands import web_command, worker_command
from workers.local.signals import raise_if_requested
from workers.python_warnings import without_errors
from workers.runs.active_runs import owner
from workers.settings import work_directory

POLL_SECONDS = 0.2
_PROBE_SECONDS = 2.0


class Supervisor:
    """The embedded services on `settings.GROVE_VAR`. Use from the main thread."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.var: Path = settings.GROVE_VAR
        self.port: int = settings.GROVE_PORT
        self.address = ""
        self.user: User
        self.project: Project
        self._lock = VarLock(self.var)
        self._port_lock: socket.socket | None = None
        self._postgres = None
        if "DATABASE_URL" not in os.environ:
            self._postgres = EmbeddedPostgres(self.var / "postgres")
        self.web = self._service("web", web_command(self.port), WEB_CLOSE.seconds + 2.0)
        # Longer than the worker's own last resort, `workers.app.close_seconds`.
        self.worker = self._service("worker", worker_command(), ENGINE_STOP.seconds + 40.0)
        # The web side has nothing to save; a worker has engines to end.
        self.web.death_signal = signal.SIGKILL

    def start(self) -> None:
        """Starts everything and returns once a page answers.

        Raises:
            StartError: with a sentence and a remedy; `stop` ends what had been started.
        """
        self._lock.take()
        self._take_port()
        if self._postgres is not None:
            self._start_postgres(self._postgres)
        self._refuse_newer_schema()
        with self.step("Preparing the database"):
            call_command("migrate", verbosity=0, interactive=False)
        with self.step("Registering the starter agents"):
            self.user, self.project = ensure_demo()
            self._register_starters()
        with self.step("Starting web and worker"):
            self.web.start()
            self.worker.start()
            self._await_web()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Shows a step of the start, whose block runs in the main thread with the database.

        Raises:
            StartError: the embedded Postgres ended. It interrupts whatever the block waits for:
                clients wait for a new connection longer than anybody waits for the reason.
        """

        def raise_its_end(number: int, frame: FrameType | None) -> None:
            if error := self.database_end():
                signal.signal(signal.SIGCHLD, before)
                raise error

        with self.progress.step(name):
            before = signal.signal(signal.SIGCHLD, raise_its_end)
            try:
                if error := self.database_end():  # before the handler was set
                    raise error
                yield
            finally:
                signal.signal(signal.SIGCHLD, before)

    def serve(self, until: Callable[[], bool]) -> None:
        """Restarts children that die, until `until()` is true."""
        while not until():
            raise_if_requested()
            if self._postgres is not None and not self._postgres.alive():
                self._restart_postgres(self._postgres)
            for service in (self.web, self.worker):
                if message := service.restart_if_dead():
                    self.progress.say(message)
                    if service is self.worker:
                        self._release_runs(service.process.pid)
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Ends everything in order; skips what was never started; does nothing without the lock."""
        if not self._lock.held:
            return
        if self.worker.alive():
            with self.progress.timed("Stopping (agents at work make a checkpoint first)"):
                self._stop_services()
        else:
            self._stop_services()
        if self._postgres is not None:
            self._end("Postgres", self._postgres.stop)
            (self.var / URL_FILE).unlink(missing_ok=True)
        if self._port_lock is not None:
            self._port_lock.close()
        self._lock.release()

    @property
    def holds_var(self) -> bool:
        """Whether this is the one supervisor of the data directory, and has begun to start."""
        return self._lock.held

    def _stop_services(self) -> None:
        for service in (self.web, self.worker):
            self._end(f"The {service.name}", service.stop)

    def _end(self, name: str, stop: Callable[[], None]) -> None:
        try:
            stop()
        except subprocess.TimeoutExpired:  # the others are to end all the same
            self.progress.say(f"{name} was killed and has not ended: {KILL.passed}.")

    def database_end(self) -> StartError | None:
        """Returns the error if the embedded Postgres ended by itself; None if it runs, or is not
        used."""
        if self._postgres is None or not (how := self._postgres.end_by_itself()):
            return None
        during = f" while {self.progress.doing}" if self.progress.doing else ""
        return StartError(
            f"Postgres ended{during} ({how}).",
            f"See {self._postgres.log}. Nothing is lost: start again with `{UP}`.",
        )

    def sign_in_link(self, next_page: str = "") -> str:
        """Returns the address of a new one-time link for the demo user."""
        query = f"?next={next_page}" if next_page else ""
        return f"{self.address}{create_sign_in_link(self.user)}{query}"

    def _take_port(self) -> None:
        self._port_lock = take_port(self.port)
        self.port = self._port_lock.getsockname()[1]
        self.address = site_address(self.port)
        self._lock.note(self.address)
        self.web.command = web_command(self.port)

    def _service(self, name: str, command: list[str], close_seconds: float) -> Service:
        return Service(
            name=name,
            command=command,
            log=self.var / "logs" / f"{name}.log",
            environment={
                **without_errors(os.environ),
                "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
                "GROVE_VAR": str(self.var),
            },
            directory=work_directory(),
            close_seconds=close_seconds,
            death_signal=signal.SIGTERM,
        )

    def _start_postgres(self, postgres: EmbeddedPostgres) -> None:
        first = "" if postgres.data.exists() else " (making a new database)"
        with self.progress.step(f"Starting Postgres{first}"):
            switch_database(postgres.start(), self.var)

    def _refuse_newer_schema(self) -> None:
        try:
            schema.refuse_newer()
        except schema.NewerSchema as error:
            raise StartError(error.sentence, error.remedy) from None

    def _restart_postgres(self, postgres: EmbeddedPostgres) -> None:
        self.progress.say(f"Postgres ended (see {postgres.log}); starting it again.")
        postgres.stop()
        try:
            postgres.start()
        except StartError as error:
            self.progress.say(str(error))
            time.sleep(2.0)

    def _release_runs(self, pid: int) -> None:
        """Releases the leases of the ended worker, so that the next one adopts its runs at once."""
        # If the database is down as well, the leases expire.
        with contextlib.suppress(Error, psycopg.Error):
            release_all(owner(pid))
        connection.close()

    def _register_starters(self) -> None:
        for name in STARTERS:
            path = starter_directory(name)
            lineage = json.loads((path / "lineage.json").read_text())
            register_starters(self.project, {name: path}, lineage)

    def _await_web(self) -> None:
        deadline = time.monotonic() + WEB_START.seconds
        while (status := health(self.port, _PROBE_SECONDS)) != HTTPStatus.OK:
            if status not in (None, HTTPStatus.SERVICE_UNAVAILABLE):
                raise StartError(
                    f"The web service did not start: /healthz on port {self.port} is answered "
                    f"with status {status}.",
                    f"Is it another program? See {self.web.log}.",
                )
            if not self.web.alive():
                raise StartError(
                    f"The web service did not start: {self.web.cause_of_end()}.",
                    f"See {self.web.log}.",
                )
            if time.monotonic() > deadline:
                raise StartError(
                    f"The web service did not start: {WEB_START.passed}.", f"See {self.web.log}."
                )
            time.sleep(0.05)
