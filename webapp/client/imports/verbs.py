"""Verbs of `grove` that import what other programs have recorded."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from webapp.client import login
from webapp.client.client import Grove
from webapp.client.imports import boards, rollouts, wandb_history
from webapp.client.imports.whole import (
    Target,
    digest_of,
    send_finished,
    send_whole,
    session_of,
)

Add = Callable[[str, Any, str], argparse.ArgumentParser]


def add_verbs(add: Add) -> None:
    """Declares the verbs; `add` takes name, handler and help."""
    command = add(
        "import-rollouts", _rollouts, "draw the rollouts of another trainer as the trees of a run"
    )
    command.add_argument("file", type=Path, help="JSON lines: problem, parent, agent, text, ...")
    _add_target(command)
    boards.add_verb(add)
    command = add("import-wandb", _wandb, "import the history of a run of W&B, a CSV file")
    command.add_argument("file", type=Path, help="as run.history().to_csv of W&B's API writes it")
    _add_target(command)


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--project", default="", help="name or number (default: the only one)")
    command.add_argument("--entity", default="", help="workspace, if two have such a project")
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


def _wandb(options: argparse.Namespace) -> int:
    run = wandb_history.run_of_history(options.file)
    with Grove(*login.credentials()) as grove:
        print(send_finished(grove, _target(options), "wandb", run))
    return 0
