"""Checkpoints: everything that the next step depends on, written atomically.

A checkpoint of step S holds, as of the end of S:
- per set of weights (`OWNER/`, by `Policy.save`): weights, tokenizer and config in Hugging Face
  layout, or the adapter in peft's, so that it is a model like any other; optimizer state, and the
  float32 copies that the optimizer steps where a model runs in lower precision; policy version;
  seed and number of the answers requested so far, which determine the next draws; the state of
  torch's own random numbers. For a frozen policy there are only the random numbers;
- `state.json`: progress (steps, position in the training problems, seconds of training), the rows
  in every agent's buffer, what methods remember of earlier steps (`engine.memory`; absent before
  0.3), and the record of the run (`engine.training.compatibility`);
- `manifest.json`: size and SHA-256 of each of these files, and the validation score of S, if it
  was validated.

Not stored, because not needed: schedules are functions of the progress; trees and their posteriors
do not outlive a step, and are seeded by (seed, step); evaluations draw their own numbers, seeded
by (seed, split, step); the verdict cache only saves work.

Invariants:
- A directory named `step-N` is complete: it appears by one rename after everything in it has
  reached the disk, and is renamed before it is deleted. The manifest reveals later damage by a
  disk or by hand.
- The newest `keep` are kept, and the best: highest validation score, ties to the latest.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.config.run_forks import MANIFEST

STATE = "state.json"
_PARTIAL, _DAMAGED = "partial-", "damaged-"
_READERS = 4


class CheckpointError(ValueError):
    """There are checkpoints, and all of them are damaged."""


class Damaged(ValueError):
    """One checkpoint is damaged; names the file and its fault."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose files match its manifest."""

    path: Path
    step: int
    state: dict[str, Any]
    validation: float | None = None
    damaged: list[str] = field(default_factory=list)
    """Faults of the newer checkpoints, which were set aside."""
    is_origin: bool = False
    """Whether it is another run's, from which this run forks (`engine.training.fork`)."""


@dataclass(frozen=True)
class Score:
    """Step of a checkpoint, and its validation score if it was validated."""

    step: int
    validation: float | None


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run directory."""

    run_dir: Path
    keep: int

    @property
    def folder(self) -> Path:
        return self.run_dir / "checkpoints"

    def save(
        self,
        step: int,
        state: dict[str, Any],
        write_agents: Callable[[Path], None],
        validation: float | None = None,
    ) -> Path:
        """Writes a checkpoint and returns its path; `write_agents` writes the agents' files into
        the directory that it receives.

        `validation` is the score that ranks checkpoints; None if this step was not validated.
        """
        # A unique name: an agent that outlived its engine may still write into the last one.
        partial = self.folder / f"{_PARTIAL}{step}-{secrets.token_hex(4)}"
        partial.mkdir(parents=True)
        write_agents(partial)
        (partial / STATE).write_text(json.dumps({"step": step, **state}))
        manifest = {"step": step, "validation": validation, "files": _contents(partial)}
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1))
        for path in (*partial.rglob("*"), partial):
            _flush(path)
        target = self.folder / f"step-{step:06d}"
        self._remove(target)
        partial.rename(target)
        _flush(self.folder)
        self._prune()
        return target

    def list(self) -> list[Path]:
        """Returns the complete checkpoints, oldest first."""
        return [path for path in self._all() if (path / MANIFEST).is_file()]

    def best(self) -> Score | None:
        """Returns the best score of the validated checkpoints; None if there are none."""
        scores = [score for path in self.list() if (score := _score(path)).validation is not None]
        return max(scores, key=lambda score: (score.validation, score.step), default=None)

    def latest(self) -> Checkpoint | None:
        """Returns the newest undamaged checkpoint, each file checked by its hash; sets newer,
        damaged ones aside. None if there are no checkpoints.

        Raises:
            CheckpointError: there are checkpoints, and all are damaged.
        """
        for left in self.folder.glob(f"{_PARTIAL}*"):
            shutil.rmtree(left, ignore_errors=True)
        damaged: list[str] = []
        broken: list[Path] = []
        for path in reversed(self._all()):
            try:
                state = _checked_state(path)
            except Damaged as error:
                damaged.append(str(error))
                broken.append(path)
                continue
            for other in broken:
                self._set_aside(other)
            return Checkpoint(path, state["step"], state, _score(path).validation, damaged)
        if damaged:
            raise CheckpointError(
                f"{self.folder}: no checkpoint is whole: {'; '.join(damaged)}. Put one back from a "
                "copy, or remove the folder to begin the run anew"
            )
        return None

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"), key=_step)

    def _prune(self) -> None:
        best = self.best()
        for path in self.list()[: -self.keep]:
            if best is None or _step(path) != best.step:
                self._remove(path)

    def _remove(self, path: Path) -> None:
        # Renamed first: a process killed while deleting leaves no partial `step-N`.
        if path.exists():
            doomed = path.rename(self.folder / f"{_PARTIAL}{path.name}-{secrets.token_hex(4)}")
            shutil.rmtree(doomed)

    def _set_aside(self, path: Path) -> None:
        aside = self.folder / f"{_DAMAGED}{path.name}"
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)


def _contents(folder: Path) -> dict[str, dict[str, Any]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with ThreadPoolExecutor(_READERS) as threads:
        digests = list(threads.map(sha256_of, files))
    return {
        str(file.relative_to(folder)): {"bytes": file.stat().st_size, "sha256": digest}
        for file, digest in zip(files, digests, strict=True)
    }


def sha256_of(file: Path) -> str:
    """Returns the SHA-256 of a file's bytes, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _checked_state(path: Path) -> dict[str, Any]:
    """Returns the state of a checkpoint. Raises Damaged if a file differs from the manifest."""
    listed = _manifest(path)["files"]
    for name, entry in listed.items():
        file = path / name
        if not file.is_file():
            raise Damaged(f"{path.name}/{name} is missing")
        if (size := file.stat().st_size) != entry["bytes"]:
            raise Damaged(f"{path.name}/{name} has {size} bytes, {entry['bytes']} were written")
    with ThreadPoolExecutor(_READERS) as threads:
        digests = threads.map(sha256_of, [path / name for name in listed])
    for (name, entry), digest in zip(listed.items(), digests, strict=True):
        if digest != entry["sha256"]:
            raise Damaged(f"{path.name}/{name} holds other bytes than were written")
    return json.loads((path / STATE).read_text())


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        if not isinstance(manifest["files"], dict):
            raise TypeError("its `files` is no object")
    except FileNotFoundError:
        raise Damaged(f"{path.name}/{MANIFEST} is missing") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{path.name}/{MANIFEST} cannot be read ({error!r})") from None
    return manifest


def _score(path: Path) -> Score:
    """Returns a checkpoint's step and score; the score is None if its manifest is damaged."""
    try:
        return Score(_step(path), _manifest(path).get("validation"))
    except Damaged:
        return Score(_step(path), None)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _flush(path: Path) -> None:
    # A power cut must not empty a checkpoint. For a directory, fsync flushes its entries.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
