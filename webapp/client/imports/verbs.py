"""Verbs of `grove` that import what other programs have recorded."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from webapp.client import login
from webapp.client.client import Grove
from webapp.client.imports import boards, mlflow_store, rollouts, wandb_folder, wandb_history
from webapp.client.imports.whole import (
    Finished,
    Target,
    digest_of,
    send_finished,
    send_whole,
    session_of,
)
from webapp.client.tracking.sender import Undelivered
from webapp.client.types import Refused

Add = Callable[[str, Any, str], argparse.ArgumentParser]


def add_verbs(add: Add) -> None:
    """Declares the verbs; `add` takes name, handler and help."""
    command = add(
        "import-rollouts", _rollouts, "draw the rollouts of another trainer as the trees of a run"
    )
    command.add_argument("file", type=Path, help="JSON lines: problem, parent, agent, text, ...")
    _add_target(command)
    boards.add_verb(add)
    command = add("import-mlflow", _mlflow, "import the ended runs of an experiment of MLflow")
    command.add_argument(
        "source", help="folder of its runs (mlruns), sqlite:///FILE, or http://HOST:PORT"
    )
    command.add_argument("--experiment", default="Default")
    command.add_argument("--no-artifacts", action="store_true", help="of a server's runs")
    _add_project(command)
    command = add("import-wandb", _wandb, "import W&B's local runs, or a history as CSV")
    command.add_argument("source", type=Path, help="folder wandb, run-ID.wandb, or FILE.csv")
    _add_target(command)


def _add_project(command: argparse.ArgumentParser) -> None:
    command.add_argument("--project", default="", help="name or number (default: the only one)")
    command.add_argument("--entity", default="", help="workspace, if two have such a project")


def _add_target(command: argparse.ArgumentParser) -> None:
    _add_project(command)
    command.add_argument("--id", default="", help="of the run (default: of the content)")
    command.add_argument("--name", default="", help="of the run (default: the file's)")


def _target(options: argparse.Namespace) -> Target:
    return Target(options.project, options.entity, options.id, options.name)


def _rollouts(options: argparse.Namespace) -> int:
    with Grove(*login.credentials()) as grove:
        print(import_rollouts(grove, _target(options), options.file))
    return 0


def import_rollouts(grove: Grove, target: Target, path: Path) -> str:
    """Imports a file of rollouts as a run, and returns in a sentence what it is.

    Raises:
        Broken: a rollout cannot be used; nothing is imported. Otherwise as `send_whole`.
    """
    with path.open("rb") as file:
        digest = digest_of(file)
        file.seek(0)
        steps = rollouts.trees_of(rollouts.rows_of(file, path.name))
    session = session_of(digest, target.key(digest))
    events = rollouts.events_of(steps, session, time.time())
    run = send_whole(grove, target, digest, path.stem, events)
    trees = [tree for grown in steps.values() for tree in grown]
    nodes = sum(len(tree.nodes) for tree in trees)
    return f"{path}: {nodes} nodes in {len(trees)} trees of {len(steps)} steps, run {run}"


def _mlflow(options: argparse.Namespace) -> int:
    found = mlflow_store.runs(
        options.source, options.experiment, artifacts=not options.no_artifacts
    )
    return _send_all("mlflow", found, Target(options.project, options.entity))


def _wandb(options: argparse.Namespace) -> int:
    source: Path = options.source
    if not source.exists():
        raise FileNotFoundError(f"{source}: there is no such file or directory")
    if source.suffix.lower() == ".csv":
        run = wandb_history.run_of_history(source)
        return _send_all("wandb", [run], _target(options))
    if (options.id or options.name) and not source.is_file():
        raise ValueError("--id, --name: a folder may hold several runs; give one run-ID.wandb")
    return _send_all("wandb", wandb_folder.runs_of_folder(source), _target(options))


def _send_all(kind: str, found: Iterable[Finished | str], target: Target) -> int:
    """Returns 1 if a run was left out or refused; the others are imported."""
    left_out = []
    with Grove(*login.credentials()) as grove:
        for run in found:
            if isinstance(run, str):
                left_out.append(run)
                continue
            try:
                print(send_finished(grove, target, kind, run), flush=True)
            except (Refused, Undelivered) as refusal:
                left_out.append(f"{run.name or run.id}: {refusal}")
    for text in left_out:
        print(f"grove: left out: {text}", file=sys.stderr)
    return 1 if left_out else 0
