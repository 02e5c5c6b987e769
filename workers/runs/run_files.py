"""Files of a run's directory that the worker writes before the engine starts, or reads and writes
after it has ended.

Invariant: `append_event` is called only while no engine runs, since a log has one writer.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from django.conf import settings

from engine.config.run_forks import write_fork
from engine.events import vocabulary as ev
from engine.events.log import EventLog
from engine.problems.jsonl import SEARCHED_FILE, save_problems
from engine.resources.small_machine import SmallMachine, small_machine
from webapp.datasets.references import for_engine
from webapp.experiments.launch.checkpoints import checkpoint_path
from webapp.experiments.models import Run
from webapp.experiments.run_settings.machine import complete
from webapp.experiments.run_settings.paths import refuse_foreign
from webapp.registry.model_files.folders import contents_of, restore
from webapp.registry.models import Evaluation
from webapp.registry.services import register_final_weights
from webapp.searches.problems import recorded_problem
from webapp.telemetry.models import Event as StoredEvent


def run_directory(run_id: uuid.UUID) -> Path:
    """Returns the folder of a run's config, log and checkpoints."""
    return settings.RUNS_DIR / str(run_id)


def prepare_directory(
    run: Run, run_dir: Path, do_slowly: Callable[[Callable[[], object]], None]
) -> None:
    """Writes what the engine reads: config, completed for this machine, searched problem, fork,
    models, evaluation.

    `do_slowly` runs each step that may take long; such a step makes no queries.

    Raises:
        ConfigError: the config names a location that a run may not use.
    """
    refuse_foreign(run.config)  # a run may have been stored before such configs were refused
    _complete(run, do_slowly)
    run_dir.mkdir(parents=True, exist_ok=True)
    draft = run_dir / "config.json.draft"
    draft.write_text(json.dumps(for_engine(run.config, run.dataset_version), indent=1))
    draft.replace(run_dir / "config.json")
    if hasattr(run, "search"):
        save_problems(run_dir / SEARCHED_FILE, [recorded_problem(run.search.problem)])
    if run.parent is not None:
        write_fork(run_dir, checkpoint_path(run.parent, run.parent_step))
    for use in run.model_uses.select_related("version"):
        if contents := contents_of(use.version):
            do_slowly(partial(restore, Path(use.version.path), contents))
    if Evaluation.objects.filter(run=run).exists():
        (run_dir / "evaluation.json").write_text("{}")


def _complete(run: Run, do_slowly: Callable[[Callable[[], object]], None]) -> None:
    if run.given is None:
        return
    machines: list[SmallMachine | None] = []
    do_slowly(lambda: machines.append(small_machine()))  # the driver's tool may take seconds
    complete(run, *machines)


def append_event(run_id: uuid.UUID, run_dir: Path, payload: ev.Payload) -> None:
    """Writes an event for an ended engine; does not repeat a state that it reported."""
    log = EventLog(run_dir)
    try:
        if not _repeats(run_id, payload):
            log.append(payload)
    finally:
        log.close()


def _repeats(run_id: uuid.UUID, payload: ev.Payload) -> bool:
    if not isinstance(payload, ev.RunStateChanged):
        return False
    last = StoredEvent.objects.filter(run=run_id, kind="run.state").order_by("-seq").first()
    return last is not None and last.payload["state"] == payload.state


def register_weights(run_id: uuid.UUID, run_dir: Path) -> None:
    """Registers the final weights of a finished run, if it has saved any, as model versions."""
    saved = StoredEvent.objects.filter(run=run_id, kind="checkpoint.saved")
    final = saved.filter(payload__final=True).order_by("-seq").first()
    if final is None or not final.payload.get("models"):
        return
    weights = {agent: run_dir / path for agent, path in final.payload["models"].items()}
    run = Run.objects.select_related("experiment__project").get(pk=run_id)
    register_final_weights(run, final.payload["step"], weights)
