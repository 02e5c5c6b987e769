"""Small real engines for these tests: a script that keeps the contract of `engine train`.

It appends events with the engine's own log, resumes after its last checkpoint, stops with code 3 on
SIGTERM, and ends itself when its lease is not renewed. It lacks only the models.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine.events.log import read_all
from tests.workers.small_engine import GO
from webapp.experiments.models import Experiment, Run
from webapp.projects.services import ensure_demo

SCRIPT = Path(__file__).with_name("small_engine.py")


def small_engine(**options: float | str) -> list[str]:
    """Command of an engine: `steps`, `pause` between events, `crash_at` step, `fail` and `refuse`
    with a message; one that `learns` reads its problems and leaves weights behind. One that `hangs`
    does so at its start, in a wait of that name or `silently`; one with `private_mb` or `shared_mb`
    takes that memory, in its `forks` if it has some. Within the step `hold_at` it waits for a
    signal or `let_go`, so that even on a slow machine it has not ended before the test kills or
    stops it there; with `hold_every`, within each step of that many."""
    words = [f"{name}={value}" for name, value in options.items()]
    return [sys.executable, str(SCRIPT), ",".join(words) or "-"]


def let_go(run_dir: Path, step: int | None = None) -> None:
    """Releases an engine that holds at a step, up to `step` if it is given; the next engine does
    not wait there."""
    draft = run_dir / f"{GO}.draft"
    draft.write_text("" if step is None else str(step))
    draft.replace(run_dir / GO)


def a_run(**fields) -> Run:
    """A queued run of the demo project."""
    user, project = ensure_demo()
    experiment = Experiment.objects.create(
        project=project, name="Small", created_by=user, config={}
    )
    values = {"number": 1, "config": {}, "seed": 0, "created_by": user, **fields}
    return Run.objects.create(experiment=experiment, **values)


def kinds_of(run: Run) -> list[str]:
    """Kinds of the run's stored events, in order."""
    return list(run.events.order_by("seq").values_list("kind", flat=True))


def states_of(run: Run) -> list[str]:
    """The states in the run's stored events, in order."""
    events = run.events.filter(kind="run.state").order_by("seq")
    return [event.payload["state"] for event in events]


def steps_counted(run_dir: Path) -> list[int]:
    """Steps that ended and were not voided by a resume, in order."""
    steps: list[int] = []
    for event in read_all(run_dir):
        if event.kind == "run.resumed":
            steps = [step for step in steps if step <= event.payload["step"]]
        elif event.kind == "step.end":
            steps.append(event.payload["step"])
    return steps
