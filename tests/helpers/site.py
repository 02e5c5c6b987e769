"""A served site with a run whose log the test controls: real server, real Postgres.

Invariant: the run is held under a lease as by a worker, and its events go through
`telemetry.ingest`, so the page sees exactly what it sees in production.
"""

from __future__ import annotations

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from engine.config.schema import RunConfig, parse_config
from engine.events.vocabulary import Event
from tests.helpers.ports import a_port
from tests.helpers.sample_log import Sample
from tests.helpers.waiting import eventually, patience
from workers.local.service_commands import web_command

READY_SECONDS = 180.0
STOP_SECONDS = 10.0


class Server:
    """The web process; it can be stopped and restarted on the same port. `environment` is added to
    the test's own."""

    def __init__(
        self,
        var: Path,
        database_url: str,
        environment: dict[str, str] | None = None,
        log: Path | None = None,
    ):
        self.port = a_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.var = var
        self._log = log
        self._environment = {
            **os.environ,
            "GROVE_VAR": str(var),
            "DATABASE_URL": database_url,
            "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
            **(environment or {}),
        }
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Starts the process and waits until the server reports that it is healthy.

        Raises:
            AssertionError: it has ended, or is not healthy in time.
        """
        with self._log.open("ab") if self._log else nullcontext() as output:
            self._process = process = subprocess.Popen(
                web_command(self.port), env=self._environment, stdout=output, stderr=output
            )

        def is_well() -> bool:
            assert process.poll() is None, f"the server ended with {process.returncode}"
            return self._is_well()

        eventually(is_well, f"{self.url}/healthz to answer", READY_SECONDS)

    def kill(self) -> None:
        """Kills the process at once, like a crash."""
        if self._process:
            self._process.kill()
            self._process.wait(STOP_SECONDS * patience())
            self._process = None

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Kills the process and starts it again at the end of the block, whatever failed there."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    def _is_well(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=10 * patience()) as reply:
                return reply.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


class SampleRun:
    """A run in the demo project, and the writer of its log."""

    def __init__(self, sample: Sample, name: str = "demo", config: RunConfig | None = None):
        """Without `config` the run has the settings that such a sample would have had."""
        from webapp.datasets.services import version_of
        from webapp.experiments.models import Experiment, Run
        from webapp.experiments.scheduling.leases import take_lease
        from webapp.experiments.services import mark_starting
        from webapp.projects.services import ensure_demo

        self.user, self.project = ensure_demo()
        config = config or sample_config(sample)
        experiment = Experiment.objects.create(
            project=self.project, name=name, created_by=self.user, config={"recipe": "mars2"}
        )
        self.run = Run.objects.create(
            experiment=experiment,
            number=1,
            config=config.model_dump(mode="json"),
            seed=config.seed,
            steps=config.training.steps,
            dataset_version=version_of(self.project, config.problems),
            created_by=self.user,
        )
        self.fencing = take_lease(self.run.pk, "sample", 3600.0)
        mark_starting(self.run.pk, self.fencing)

    def feed(self, events: Iterable[Event]) -> int:
        """Ships events; returns the run's new head."""
        from webapp.telemetry.ingest.ingest import ingest

        return ingest(self.run.pk, self.fencing, list(events))

    def end(self, how: str, error: str = "") -> None:
        """Ends the run as finished, stopped or failed."""
        from webapp.experiments import services

        if how == "failed":
            services.mark_failed(self.run.pk, self.fencing, error)
        else:
            getattr(services, f"mark_{how}")(self.run.pk, self.fencing)

    def sign_in_path(self) -> str:
        from webapp.accounts.services import create_sign_in_link

        return create_sign_in_link(self.user) + f"?next=/runs/{self.run.pk}/"


def sample_config(sample: Sample):
    """The settings that such a run would have had."""
    agents = [{"name": name, "model": f"starter:{name}"} for name in sample.agents]
    return parse_config(
        {
            "seed": sample.seed,
            "agents": agents,
            # A log may hold a wider tree than the settings of a run allow.
            "search": {"nodes_per_tree": min(sample.nodes, 5000)},
            "training": {
                "steps": sample.planned_steps or sample.steps,
                "minutes": sample.minutes,
                "trees_per_step": sample.trees,
            },
        }
    )
