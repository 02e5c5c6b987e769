"""Position of a mirror in W&B: the last event that its run holds; a step there is the event's seq.

Nothing here needs the package `wandb`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from webapp.client.wandb_files import HISTORY, files, records, step_of


class Begun(Protocol):
    """What is read of W&B's run (`wandb.Run`) once `wandb.init` has returned."""

    @property
    def resumed(self) -> bool: ...

    @property
    def starting_step(self) -> int: ...

    @property
    def step(self) -> int: ...


def online_head(run: Begun) -> int:
    """Returns the last step that W&B's server holds, 0 without one.

    `Run.step` alone is 0 until something is logged (W&B 0.28 to 0.31: its process takes the step of
    the server over with the first row); `starting_step` is what the server said.
    """
    return max(0, run.starting_step - 1, run.step - 1) if run.resumed else 0


def offline_head(folder: Path, run_id: str) -> int:
    """Returns the last step in the files of a run below `folder`, 0 without one."""
    found = [path for path in files(folder) if path.name == f"run-{run_id}.wandb"]
    return max((_last(path) for path in found), default=0)


def _last(path: Path) -> int:
    rows = (one.message(HISTORY) for one in records(path) if HISTORY in one)
    return max(map(step_of, rows), default=0)
