"""`manage.py up`: everything on this machine, until Ctrl-C. `make run` and `grove up` call it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from webapp.config.installation import UP
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Run
from workers.local.endings import ended_in_order
from workers.local.progress import Progress
from workers.local.supervisor import Supervisor

DEMO_RECIPE = "demo-mixture"


class Command(BaseCommand):
    help = "Start Postgres, web and worker on this machine and stop them all on Ctrl-C."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        progress = Progress()
        supervisor = Supervisor(progress)
        with ended_in_order(supervisor, "Grove did not start"):
            supervisor.start()
            run = ensure_demo_run(supervisor)
            progress.say("")
            progress.say(f"Grove is at {supervisor.address}")
            progress.say(f"Sign in (works once): {supervisor.sign_in_link(f'/runs/{run.pk}/')}")
            progress.say(
                f"Ctrl-C stops everything; the next `{UP}` continues where this one stopped."
            )
            supervisor.serve(until=lambda: False)


def ensure_demo_run(supervisor: Supervisor) -> Run:
    """Returns the demo project's first run, which is launched once and resumed at later starts."""
    runs = Run.objects.filter(experiment__project=supervisor.project).order_by("created")
    if first := runs.first():
        return first
    with supervisor.step("Launching the demo experiment"):
        return create_experiment_with_run(
            supervisor.project, supervisor.user, DEMO_RECIPE, {}, "Two agents, one tree"
        )
