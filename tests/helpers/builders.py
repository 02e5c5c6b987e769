"""Builders of small real objects for tests, and the cast.

Alice owns the workspace, Mia maintains it, Bob is a member, Vera is a viewer, Charlie is a
stranger.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Model as DatabaseModel
from safetensors.numpy import save_file

from engine.config.problems import ProblemsConfig
from engine.config.schema import RunConfig, parse_config
from engine.events.vocabulary import Event, RunState
from engine.policy.starters import starter_directory
from engine.problems.problem import CallTest, Problem
from webapp.accounts.models import Scope, User
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.services import version_of
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling.leases import take_lease
from webapp.experiments.services import mark_starting
from webapp.projects.models import Membership, Project, Role, Workspace
from webapp.projects.services import create_project, create_workspace
from webapp.registry import evaluations
from webapp.registry.models import Model, ModelVersion, Promotion, PromotionState
from webapp.searches.models import Search
from webapp.searches.services import SearchSpec, create_search
from webapp.telemetry.ingest.ingest import ingest
from webapp.tokens.services import create_token


@dataclass
class Cast:
    alice: User
    mia: User
    bob: User
    vera: User
    charlie: User
    project: Project


def a_cast() -> Cast:
    """The cast, and the project of which all but Charlie are members."""
    alice, mia, bob, vera, charlie = (
        User.objects.create_user(name) for name in ("alice", "mia", "bob", "vera", "charlie")
    )
    workspace = create_workspace("Trees", "trees", alice)
    Membership.objects.create(workspace=workspace, user=mia, role=Role.MAINTAINER)
    Membership.objects.create(workspace=workspace, user=bob, role=Role.MEMBER)
    Membership.objects.create(workspace=workspace, user=vera, role=Role.VIEWER)
    create_workspace("Elsewhere", "elsewhere", charlie)
    project = create_project(workspace, "Oaks", "oaks", created_by=alice)
    return Cast(alice, mia, bob, vera, charlie, project)


def a_token(
    user: User,
    place: Workspace | Project,
    *scopes: Scope,
    lifetime: timedelta = timedelta(days=1),
) -> str:
    """Returns the secret of a new token of `user`, regardless of what their role permits."""
    return create_token(user, "robot", list(scopes), place, lifetime)


def a_config(**fields: Any) -> RunConfig:
    """Settings of two agents."""
    agents = [{"name": "oak", "model": "starter:oak"}, {"name": "fern", "model": "starter:fern"}]
    return parse_config({"agents": agents, **fields})


def a_run(cast: Cast, state: RunState = RunState.QUEUED, **fields: Any) -> Run:
    """A run that Alice created, in the given state, without a lease."""
    experiment = Experiment.objects.create(
        project=cast.project, name="Shade", created_by=cast.alice, config={"recipe": "mars2"}
    )
    values = {"number": 1, "config": a_config().model_dump(mode="json"), "seed": 0, **fields}
    return Run.objects.create(
        experiment=experiment, created_by=cast.alice, state=state.value, **values
    )


A_PROBLEM = Problem(
    "sort",
    "Write solve(x), which returns the list x in ascending order.",
    "solve",
    (CallTest(([3, 1],), [1, 3]),),
    (CallTest(([2, 2, 1],), [1, 2, 2]),),
)


def a_search(cast: Cast, **overrides: Any) -> Search:
    """A search that Alice queued, of both starters, for a problem of the generated dataset."""
    version = version_of(cast.project, ProblemsConfig(train=5, validation=0, test=3))
    requested = SearchSpec(["starter:oak", "starter:fern"], A_PROBLEM, version, overrides, "Sort")
    return create_search(cast.project, cast.alice, requested)


def many_runs(cast: Cast, number: int, state: RunState = RunState.FINISHED) -> list[Run]:
    """Creates `number` runs of Alice, each in its own experiment, with the result of a real run."""
    config = a_config().model_dump(mode="json")
    payload = {
        "agents": {"oak": 0.25, "fern": 0.5},
        "standard_errors": {},
        "problems": 300,
        "step": 0,
    }
    split = {"before": payload, "latest": {**payload, "step": 40}}
    result = {"solved": 0.75, "reward": 0.5, "validation": split, "test": split}
    experiments = Experiment.objects.bulk_create(
        Experiment(project=cast.project, name=f"Sweep {index}", created_by=cast.alice, config={})
        for index in range(number)
    )
    _update_planner_statistics(Experiment)
    fields = {"result": result, "step": 40, "steps": 40, "state": state.value}
    runs = Run.objects.bulk_create(
        Run(experiment=one, number=1, seed=index, config={}, created_by=cast.alice, **fields)
        for index, one in enumerate(experiments)
    )
    of_these = Run.objects.filter(experiment__in=experiments)
    of_these.update(config=config)  # sent once, not for each
    _update_planner_statistics(Run)
    for run in runs:
        run.config = config
    return runs


def _update_planner_statistics(model: type[DatabaseModel]) -> None:
    """Updates the planner's row counts, as autovacuum does a moment later: otherwise Postgres scans
    a table that was empty in full for every row that refers to it, ten thousand times."""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {model._meta.db_table}")


def a_held_run(cast: Cast, seconds: float = 60) -> tuple[Run, int]:
    """A starting run and the fencing token of its lease."""
    run = a_run(cast)
    fencing = take_lease(run.pk, "worker", seconds)
    return mark_starting(run.pk, fencing), fencing


def an_event(seq: int, kind: str = "log.line", **payload: Any) -> Event:
    """One event; `tree` and `node` are set as fields of the event."""
    tree, node = payload.pop("tree", None), payload.pop("node", None)
    if kind == "log.line":
        payload = {"level": "info", "message": f"line {seq}", **payload}
    return Event(seq, time.time(), kind, tree, node, payload)


def some_events(first: int, last: int, **payload: Any) -> list[Event]:
    """Log lines of these seqs, both ends included."""
    return [an_event(seq, **payload) for seq in range(first, last + 1)]


def store(run: Run, fencing: int, last: int, **payload: Any) -> None:
    """Ships log lines up to seq `last`, from the run's current head."""
    run.refresh_from_db()
    while run.head_seq < last:
        upto = min(last, run.head_seq + 1000)
        run.head_seq = ingest(run.pk, fencing, some_events(run.head_seq + 1, upto, **payload))


def a_model_directory(path: Path, numbers: int = 6, seed: int = 0) -> Path:
    """A directory with real safetensors weights of `numbers` parameters."""
    path.mkdir(parents=True)
    weights = np.random.default_rng(seed).random(numbers, dtype=np.float32)
    save_file({"embed": weights}, path / "model.safetensors", metadata={"format": "pt"})
    return path


def a_model_folder(path: Path, shards: int = 1, seed: int = 0) -> Path:
    """A directory with all files of a model in Hugging Face layout and tiny weights."""
    oak = starter_directory("oak")
    path.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (path / name).write_bytes((oak / name).read_bytes())
    config = json.loads((path / "config.json").read_text()) | _TINY
    (path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": shards}))
    rng = np.random.default_rng(seed)
    parts = [
        {name: rng.random(shape, dtype=np.float32) for name, shape in _layer(number).items()}
        for number in range(shards)
    ]
    if shards == 1:
        save_file(parts[0], path / "model.safetensors")
        return path
    files = {f"model-{n:05}-of-{shards:05}.safetensors": part for n, part in enumerate(parts, 1)}
    for name, part in files.items():
        save_file(part, path / name)
    index = {"metadata": {}, "weight_map": {key: name for name in files for key in files[name]}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    return path


_TINY = {"hidden_size": 2, "intermediate_size": 3, "num_attention_heads": 1,
         "num_key_value_heads": 1, "head_dim": 2}  # fmt: skip


def _layer(number: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors of a layer; of the first with those that no layer has."""
    at, square = f"model.layers.{number}.", (2, 2)
    own = {f"{at}self_attn.{name}_proj.weight": square for name in "qkvo"}
    own |= {f"{at}mlp.{name}_proj.weight": (3, 2) for name in ("gate", "up")}
    own |= {f"{at}mlp.down_proj.weight": (2, 3)}
    own |= {f"{at}{n}_layernorm.weight": (2,) for n in ("input", "post_attention")}
    rest = {"model.embed_tokens.weight": (1024, 2), "model.norm.weight": (2,)}
    return own | ({} if number else rest)


def parameters_of(shards: int = 1) -> int:
    """Returns the number of weights of `a_model_folder`."""
    return sum(math.prod(shape) for n in range(shards) for shape in _layer(n).values())


def a_registry(cast: Cast) -> dict[str, int]:
    """A model with two versions, the second derived from the first, with an evaluation under way
    and a promotion requested by Mia. Returns ids and number by the names of placeholders."""
    dataset = Dataset.objects.create(project=cast.project, name="measured")
    spec = {"dataset": "generated", "seed": 0, "train": 10, "validation": 0, "test": 3}
    problems = DatasetVersion.objects.create(
        dataset=dataset, number=1, spec=spec, content_hash="a" * 64
    )
    model = Model.objects.create(project=cast.project, name="oak")
    fields = {"model": model, "path": "/models/oak", "parameters": 6, "sha256": "a" * 64}
    first = ModelVersion.objects.create(number=1, **fields)
    second = ModelVersion.objects.create(number=2, parent=first, **fields)
    expected = evaluations.EvaluationSettings(problems=3)
    evaluation = evaluations.evaluate(second, problems, expected, cast.alice)
    requested = Promotion.objects.create(
        model=model, alias="candidate", version=second, number=2, reason="It is better.",
        asked_by=cast.mia, state=PromotionState.WAITING,
    )  # fmt: skip
    return {
        "model_id": model.pk,
        "number": 2,
        "evaluation_id": evaluation.pk,
        "promotion_id": requested.pk,
    }
