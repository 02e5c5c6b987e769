"""A small installation to back up: rows and files of every kind."""

from __future__ import annotations

import json

import msgspec

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_held_run, a_run, a_token, an_event, some_events
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.site import SampleRun
from webapp.accounts.models import Scope
from webapp.artifacts.store import put
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.experiments.models import Run
from webapp.registry.models import Model, ModelVersion
from webapp.telemetry.ingest.ingest import ingest
from workers.runs.run_files import run_directory

WEIGHTS, PROBLEMS = bytes(range(256)) * 5000, b'{"id": "one"}\n'


def write_log(run, events):
    folder = run_directory(run.pk)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "events.jsonl").open("ab") as log:
        log.writelines(msgspec.json.encode(event) + b"\n" for event in events)
    (folder / "config.json").write_text(json.dumps(run.config))
    return folder


def a_checkpoint(folder, step):
    """The files of a checkpoint, the weights of which all checkpoints share."""
    path = folder / "checkpoints" / f"step-{step:06d}"
    (path / "oak").mkdir(parents=True)
    (path / "oak" / "model.safetensors").write_bytes(WEIGHTS)
    (path / "manifest.json").write_text(json.dumps({"step": step}))
    return path


def a_replayed_run():
    """A finished run with trees, in the database and in its log."""
    sample = SampleRun(Sample(steps=2, trees=2, nodes=3))
    events = list(sample_events(Sample(steps=2, trees=2, nodes=3)))
    write_log(sample.run, events)
    sample.feed(events)
    sample.end("finished")
    return sample.run


def an_active_run(cast):
    """A run whose engine is ahead of the database, with two checkpoints, one of them unknown to it,
    and with the files of living processes."""
    run, fencing = a_held_run(cast)
    known = [*some_events(1, 5), an_event(6, "checkpoint.saved", step=4, path="checkpoints/4")]
    folder = write_log(run, [*known, *some_events(7, 20)])
    ingest(run.pk, fencing, [*known, *some_events(7, 9)])
    a_checkpoint(folder, 4)
    a_checkpoint(folder, 5)
    (folder / "checkpoints" / "partial-6-ab").mkdir()
    (folder / "checkpoints" / "partial-6-ab" / "half").write_text("half")
    for name in ("lease", "engine.json", "config.json.draft"):
        (folder / name).write_text("{}")
    return run, fencing


def an_installation(var):
    """Rows and files of every kind; returns a token, a finished and an active run."""
    cast = a_cast()
    weights, problems = put([WEIGHTS]), put([PROBLEMS])
    dataset = Dataset.objects.create(project=cast.project, name="ours")
    DatasetVersion.objects.create(
        dataset=dataset, number=1, content_hash="a", spec={}, artifact=problems
    )
    model = Model.objects.create(project=cast.project, name="oak")
    path = var / "model-versions" / "x"
    ModelVersion.objects.create(
        model=model, number=1, sha256=weights.pk, parameters=6, path=str(path)
    ).files.create(name="model.safetensors", size=len(WEIGHTS), sha256=weights.pk, artifact=weights)
    finished = a_replayed_run()
    token = a_token(finished.created_by, finished.project, Scope.RUNS_READ)
    active, _ = an_active_run(cast)
    agents = [{"name": "oak", "model": str(path)}]
    Run.objects.filter(pk=active.pk).update(config={**active.config, "agents": agents})
    a_run(cast, RunState.QUEUED)
    return token, finished, active


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
