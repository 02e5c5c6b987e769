"""Forks: runs that begin with the weights and the optimizer of another run's checkpoint.

RUN_DIR/fork.json names the checkpoint. Before anything else it is linked (or copied) into
RUN_DIR/origin, whole or not at all, so that the fork needs nothing of its parent any more; the
parent's files are never written to. A fork counts steps on from its origin, and draws random
numbers of its own; what stood in the parent's buffers is left there. Once it has a checkpoint of
its own, it is a run like any other.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.config import parse_config
from engine.events import LogLine
from engine.forking import fork_faults
from engine.recipes import override, parse_override
from engine.training.checkpoint import MANIFEST, STATE, Checkpoint, CheckpointError, Checkpoints
from engine.training.compatibility import ResumeError, RunRecord, changed_models, known_settings

FORK_FILE, ORIGIN = "fork.json", "origin"


class ForkError(ResumeError):
    """The checkpoint does not fit the fork's settings: every change that cannot be, by its path."""


def write_fork(run_dir: Path, checkpoint: Path) -> None:
    """Let the run of a new directory begin at `checkpoint`."""
    (run_dir / FORK_FILE).write_text(json.dumps({"checkpoint": str(checkpoint.absolute())}))


def is_fork(run_dir: Path) -> bool:
    """Whether the run of this directory begins at another run's checkpoint."""
    return (run_dir / FORK_FILE).is_file()


def origin_of(run_dir: Path, record: RunRecord) -> Checkpoint | None:
    """The checkpoint that a fork begins with; None if the run is no fork.

    Raises:
        CheckpointError: it is gone, or not whole.
        ForkError: the settings changed what they cannot.
    """
    if not is_fork(run_dir):
        return None
    source = Path(json.loads((run_dir / FORK_FILE).read_text())["checkpoint"])
    kept = Checkpoints(run_dir / ORIGIN, keep=1)
    if not (kept.folder / source.name).is_dir():
        _bring(source, kept.folder)
    found = kept.latest()
    if found is None:
        raise CheckpointError(f"{kept.folder} holds no checkpoint; remove it to bring it anew")
    _check(found.state["run"], record)
    return replace(found, is_origin=True)


def parent_of(run_dir: Path) -> str:
    """Name of the run directory from which a fork comes."""
    source = Path(json.loads((run_dir / FORK_FILE).read_text())["checkpoint"])
    return source.parents[1].name


def told_of(origin: Checkpoint, run_dir: Path) -> LogLine:
    """What the log says of it."""
    message = f"forked from step {origin.step} of run {parent_of(run_dir)}: weights and optimizer"
    return LogLine("info", message)


def _bring(source: Path, folder: Path) -> None:
    if not (source / MANIFEST).is_file():
        there = ", ".join(p.parent.name for p in sorted(source.parent.glob(f"step-*/{MANIFEST}")))
        raise CheckpointError(
            f"{source} is gone; a run keeps its newest checkpoints and the best. Fork from one "
            f"that is there: {there or 'none is'}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"partial-{source.name}-{secrets.token_hex(4)}"
    shutil.copytree(source, partial, copy_function=_link)
    partial.rename(folder / source.name)


def _link(source: str, target: str) -> None:
    # A checkpoint's files never change: a link is a copy that takes no room.
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _check(saved: dict[str, Any], now: RunRecord) -> None:
    faults = [
        *fork_faults(known_settings(saved["config"]), now.config),
        *changed_models(saved["models"], now.models),
    ]
    if faults:
        raise ForkError(faults)


def add_arguments(command: Any) -> None:
    """Declare the arguments of `fork`."""
    command.add_argument("checkpoint", type=Path, metavar="CHECKPOINT",
                         help="RUN_DIR/checkpoints/step-N of another run")  # fmt: skip
    command.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="of the new run")
    command.add_argument("overrides", nargs="*", metavar="PATH=VALUE", help="what is to change")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write config.json and fork.json of a run that starts at a checkpoint.

    Raises:
        ConfigError: a change that cannot be, with its path; nothing was written.
        OSError, ValueError: there is no such checkpoint.
    """
    saved = json.loads((arguments.checkpoint / STATE).read_text())["run"]["config"]
    before = known_settings(saved)
    data = json.loads(json.dumps(before))
    override(data, dict(map(parse_override, arguments.overrides)))
    config = parse_config(data)
    if faults := fork_faults(before, config.model_dump(mode="json")):
        raise ForkError(faults)
    arguments.run_dir.mkdir(parents=True, exist_ok=True)
    (arguments.run_dir / "config.json").write_text(config.model_dump_json(indent=1))
    write_fork(arguments.run_dir, arguments.checkpoint)
    return 0
