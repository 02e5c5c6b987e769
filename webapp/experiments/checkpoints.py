"""Which checkpoints of a run are there to fork from.

Invariant: only what lies whole in the run's own directory counts; the log may tell of more, which
the run has removed since.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from webapp.experiments.models import Run

_WHOLE = "manifest.json"


def checkpoint_steps(run: Run) -> list[int]:
    """Steps of which a checkpoint is there, newest first."""
    found = (_folder(run)).glob(f"step-*/{_WHOLE}")
    return sorted((int(path.parent.name.removeprefix("step-")) for path in found), reverse=True)


def checkpoint_path(run: Run, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return _folder(run) / f"step-{step:06d}"


def _folder(run: Run) -> Path:
    return Path(settings.RUNS_DIR).absolute() / str(run.pk) / "checkpoints"
