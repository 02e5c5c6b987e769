"""`manage.py up`: everything on this machine, until Ctrl-C. `make run` and `grove up` call it."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError

from webapp.config.installation import UP
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Run
from workers.local.errors import StartError
from workers.local.progress import Progress
from workers.local.signals import ShutdownRequested, ignore_signals, raise_on_signals
from workers.local.supervisor import Supervisor

DEMO_RECIPE = "demo-mixture"


class Command(BaseCommand):
    help = "Start Postgres, web and worker on this machine and stop them all on Ctrl-C."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        progress = Progress()
        supervisor = Supervisor(progress)
        raise_on_signals()
        try:
            supervisor.start()
            run = ensure_demo_run(supervisor)
            progress.say("")
            progress.say(f"Grove is at {supervisor.address}")
            progress.say(f"Sign in (works once): {supervisor.sign_in_link(f'/runs/{run.pk}/')}")
            progress.say(
                f"Ctrl-C stops everything; the next `{UP}` continues where this one stopped."
            )
            supervisor.serve(until=lambda: False)
        except ShutdownRequested:
            progress.say("")
        except StartError as error:
            progress.say(error.sentence)
            progress.say(error.remedy)
            raise SystemExit(1) from None
        except Exception as error:
            progress.say(f"Grove did not start: {explain(error, supervisor.var)}")
            raise SystemExit(1) from None
        finally:
            ignore_signals()
            supervisor.stop()


def explain(error: Exception, var: Path) -> str:
    """Returns a sentence and a remedy for an unexpected error; writes its traceback to a file."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{var} is on a full disk. Free some space there and start again."
    if isinstance(error, OperationalError) and "DATABASE_URL" in os.environ:
        return f"the database of DATABASE_URL does not answer ({error}). Is its address right?"
    log = var / "logs" / "up.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(traceback.format_exception(error)))
    return f"{type(error).__name__}: {error}. See {log}."


def ensure_demo_run(supervisor: Supervisor) -> Run:
    """Returns the demo project's first run, which is launched once and resumed at later starts."""
    runs = Run.objects.filter(experiment__project=supervisor.project).order_by("created")
    if first := runs.first():
        return first
    supervisor.progress.say("Launching the demo experiment")
    return create_experiment_with_run(
        supervisor.project, supervisor.user, DEMO_RECIPE, {}, "Two agents, one tree"
    )
