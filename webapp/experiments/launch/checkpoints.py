"""Checkpoints of a run that can be forked.

Invariant: only complete checkpoints in the run's own directory count; the log may record more,
which the run has removed since.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings

from engine.config import run_forks
from webapp.experiments.models import Run


def checkpoint_steps(run: Run) -> list[int]:
    """Returns the steps whose checkpoints exist, newest first."""
    manifests = (_folder(run)).glob(f"step-*/{run_forks.MANIFEST}")
    return sorted((int(path.parent.name.removeprefix("step-")) for path in manifests), reverse=True)


def checkpoint_path(run: Run, step: int) -> Path:
    """Returns the path of the checkpoint of a step."""
    return _folder(run) / f"step-{step:06d}"


def link_checkpoint(origin: Run, step: int, fork: Run) -> bool:
    """Links a checkpoint into the directory of the fork that starts from it, so that `origin` may
    remove its own. Returns False if it has been removed already.

    On a file system without links nothing is linked: the engine copies it when it starts.
    """
    try:
        run_forks.hold(checkpoint_path(origin, step), _directory(fork), copies=False)
    except run_forks.CheckpointMissing:
        release(fork)
        return False
    return True


def release(fork: Run) -> None:
    """Removes the directory of a fork that was not created after all."""
    shutil.rmtree(_directory(fork), ignore_errors=True)


def _folder(run: Run) -> Path:
    return _directory(run) / "checkpoints"


def _directory(run: Run) -> Path:
    return Path(settings.RUNS_DIR).absolute() / str(run.pk)
