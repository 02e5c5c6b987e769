"""Which checkpoints of a run are there to fork from.

Invariant: only what lies whole in the run's own directory counts; the log may tell of more, which
the run has removed since.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from django.conf import settings

from webapp.experiments.models import Run

_WHOLE = "manifest.json"
_HELD = "origin"


def checkpoint_steps(run: Run) -> list[int]:
    """Steps of which a checkpoint is there, newest first."""
    found = (_folder(run)).glob(f"step-*/{_WHOLE}")
    return sorted((int(path.parent.name.removeprefix("step-")) for path in found), reverse=True)


def checkpoint_path(run: Run, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return _folder(run) / f"step-{step:06d}"


def hold(origin: Run, step: int, fork: Run) -> bool:
    """Link a checkpoint into the directory of a run that is to begin with it, where its engine
    looks first (`engine.training.fork`): whatever `origin` removes from now on, it is there. False
    if it has been removed already.

    A file system without links is told of nothing: then the engine copies it when it starts.
    """
    source = checkpoint_path(origin, step)
    target = _directory(fork) / _HELD / "checkpoints" / source.name
    partial = target.with_name(f"partial-{source.name}")
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(source, partial, copy_function=os.link)
        if not (partial / _WHOLE).is_file():  # it was being removed meanwhile
            raise FileNotFoundError(source)
        partial.rename(target)
    except (OSError, shutil.Error):
        release(fork)
        return (source / _WHOLE).is_file()
    return True


def release(fork: Run) -> None:
    """Give up what a run holds that was not made after all."""
    shutil.rmtree(_directory(fork), ignore_errors=True)


def _folder(run: Run) -> Path:
    return _directory(run) / "checkpoints"


def _directory(run: Run) -> Path:
    return Path(settings.RUNS_DIR).absolute() / str(run.pk)
