"""Checkpoints: everything that a resume needs, written whole or not at all.

Invariant: a directory named `step-N` is complete; it appears by one rename, and the newest wins.
Weights are safetensors; the rest is JSON and plain tensors.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATE = "state.json"


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run directory; keeps the newest `keep`."""

    run_dir: Path
    keep: int

    @property
    def folder(self) -> Path:
        return self.run_dir / "checkpoints"

    def save(self, step: int, state: dict[str, Any], write_agents: Callable[[Path], None]) -> Path:
        """Write one; `write_agents` puts the agents' files into the directory it is given."""
        partial = self.folder / f"partial-{step}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        write_agents(partial)
        (partial / STATE).write_text(json.dumps({"step": step, **state}))
        for file in partial.rglob("*"):
            if file.is_file():
                _flush(file)
        target = self.folder / f"step-{step:06d}"
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        for old in self.list()[: -self.keep]:
            shutil.rmtree(old)
        return target

    def list(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(path for path in self.folder.glob("step-*") if (path / STATE).is_file())

    def latest(self) -> tuple[Path, dict[str, Any]] | None:
        """The newest checkpoint and its state."""
        found = self.list()
        return (found[-1], json.loads((found[-1] / STATE).read_text())) if found else None


def _flush(file: Path) -> None:
    # A checkpoint that a power cut could empty is none.
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
