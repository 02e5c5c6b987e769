"""Forks: runs that begin with the weights and the optimizer of another run's checkpoint.

RUN_DIR/fork.json names the checkpoint, and RUN_DIR/origin holds it from the creation of the fork on
(`engine.config.run_forks`), which then needs nothing of its parent. A fork continues the step
count of its origin, and draws its own random numbers; it does not take over the parent's buffers,
and of what its methods remember only what these pass on (`engine.memory`). Once it has its own
checkpoint, it is a run like any other.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.config.run_forks import (
    FORK_FILE,
    ORIGIN,
    CheckpointMissing,
    fork_errors,
    hold,
    write_fork,
)
from engine.config.schema import parse_config
from engine.events.log import FILE_NAME
from engine.events.vocabulary import LogLine
from engine.recipes import override, parse_override
from engine.run.checkpoint import STATE, Checkpoint, CheckpointError, Checkpoints
from engine.training.compatibility import (
    ResumeError,
    RunRecord,
    changed_models,
    settings_with_defaults,
)


class ForkError(ResumeError):
    """The checkpoint does not fit the fork's settings; lists every forbidden change by path."""


def is_fork(run_dir: Path) -> bool:
    """Whether the run of this directory begins at another run's checkpoint."""
    return (run_dir / FORK_FILE).is_file()


def origin_of(run_dir: Path, record: RunRecord) -> Checkpoint | None:
    """Returns the checkpoint that a fork begins with; None if the run is no fork.

    Raises:
        CheckpointError: the checkpoint is gone or damaged.
        ForkError: the settings differ where a fork's may not.
    """
    if not is_fork(run_dir):
        return None
    source = Path(json.loads((run_dir / FORK_FILE).read_text())["checkpoint"])
    checkpoints = Checkpoints(run_dir / ORIGIN, keep=1)
    try:
        hold(source, run_dir, copies=True)  # a web page does not wait for copies
    except CheckpointMissing as error:
        raise CheckpointError(str(error)) from None
    latest = checkpoints.latest()
    if latest is None:
        raise CheckpointError(
            f"{checkpoints.folder} holds no checkpoint; remove it to bring it anew"
        )
    _check(latest.state["run"], record)
    return replace(latest, is_origin=True)


def parent_of(run_dir: Path) -> str:
    """Returns the name of a fork's parent run directory."""
    source = Path(json.loads((run_dir / FORK_FILE).read_text())["checkpoint"])
    return source.parents[1].name


def origin_line(origin: Checkpoint, run_dir: Path) -> LogLine:
    """Returns the log line about a fork's origin."""
    message = f"forked from step {origin.step} of run {parent_of(run_dir)}: weights and optimizer"
    return LogLine("info", message)


def _check(saved: dict[str, Any], now: RunRecord) -> None:
    errors = [
        *fork_errors(settings_with_defaults(saved["config"]), now.config),
        *changed_models(saved["models"], now.models),
    ]
    if errors:
        raise ForkError(errors)


def add_arguments(command: Any) -> None:
    """Declares the arguments of `fork`."""
    command.add_argument("checkpoint", type=Path, metavar="CHECKPOINT",
                         help="RUN_DIR/checkpoints/step-N of another run")  # fmt: skip
    command.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="of the new run")
    command.add_argument("overrides", nargs="*", metavar="PATH=VALUE", help="what is to change")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prepares the directory of a run that starts at a checkpoint, and keeps the checkpoint there.

    Raises:
        ForkError: a forbidden change, with its path; nothing was written.
        CheckpointMissing: there is no such checkpoint.
        ValueError: the directory is that of a run that has begun.
    """
    checkpoint, run_dir = arguments.checkpoint, arguments.run_dir
    if (run_dir / FILE_NAME).exists():
        raise ValueError(f"RUN_DIR = {run_dir}: a run has begun there; name another directory")
    try:
        saved = json.loads((checkpoint / STATE).read_text())["run"]["config"]
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointMissing(checkpoint) from None
    before = settings_with_defaults(saved)
    data = json.loads(json.dumps(before))
    override(data, dict(map(parse_override, arguments.overrides)))
    config = parse_config(data)
    if errors := fork_errors(before, config.model_dump(mode="json")):
        raise ForkError(errors)
    hold(checkpoint.absolute(), run_dir, copies=True)
    (run_dir / "config.json").write_text(config.model_dump_json(indent=1))
    write_fork(run_dir, checkpoint)
    return 0
