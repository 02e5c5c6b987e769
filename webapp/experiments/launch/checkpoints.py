"""Which checkpoints of a run are there to fork from.

Invariant: only what lies whole in the run's own directory counts; the log may tell of more, which
the run has removed since.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings

from engine.config import run_forks
from webapp.experiments.models import Run


def checkpoint_steps(run: Run) -> list[int]:
    """Steps of which a checkpoint is there, newest first."""
    found = (_folder(run)).glob(f"step-*/{run_forks.MANIFEST}")
    return sorted((int(path.parent.name.removeprefix("step-")) for path in found), reverse=True)


def checkpoint_path(run: Run, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return _folder(run) / f"step-{step:06d}"


def hold(origin: Run, step: int, fork: Run) -> bool:
    """Let a run that is to begin with a checkpoint have it, whatever `origin` removes from now on.
    False if it has been removed already.

    A file system without links is told of nothing: then the engine copies it when it starts.
    """
    try:
        run_forks.hold(checkpoint_path(origin, step), _directory(fork), copies=False)
    except run_forks.CheckpointGone:
        release(fork)
        return False
    return True


def release(fork: Run) -> None:
    """Give up what a run holds that was not made after all."""
    shutil.rmtree(_directory(fork), ignore_errors=True)


def _folder(run: Run) -> Path:
    return _directory(run) / "checkpoints"


def _directory(run: Run) -> Path:
    return Path(settings.RUNS_DIR).absolute() / str(run.pk)
