"""Run forks: the checkpoint that a fork starts from, and settings that it may not change.

Light enough for a page. Invariants:
- A fork that is not refused here starts: weights and optimizer of the checkpoint are those that the
  new settings need.
- A held checkpoint is in the fork's own directory, whole or not at all, even if the parent removes
  its own later. Nothing of the parent is ever written to.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

FORK_FILE, ORIGIN = "fork.json", "origin"
MANIFEST = "manifest.json"
"""File that only a completely written checkpoint has."""

_CHECKPOINT_SETTINGS = {
    "name": "checkpoints hold weights by the agent's name",
    "model": "its weights and tokenizer grew from this model",
    "trainable": "a checkpoint holds weights and optimizer of what learns, and of nothing else",
    "shares_weights_with": "agents that shared weights have one set of them",
    "lora": "adapters of another shape do not fit",
}
"""Settings of an agent on which a checkpoint's files depend, and why."""
_LORA_SHAPE = ("rank", "target_modules")


class CheckpointMissing(ValueError):
    """Raised if a checkpoint does not exist, or no longer does; lists those that do."""

    def __init__(self, checkpoint: Path):
        manifests = sorted(checkpoint.parent.glob(f"step-*/{MANIFEST}"))
        existing = ", ".join(path.parent.name for path in manifests) or "none"
        super().__init__(
            f"{checkpoint} does not exist; a run keeps its newest checkpoints and the best. Fork "
            f"from an existing one: {existing}"
        )


def write_fork(run_dir: Path, checkpoint: Path) -> None:
    """Makes the run of a new directory start at `checkpoint`."""
    (run_dir / FORK_FILE).write_text(json.dumps({"checkpoint": str(checkpoint.absolute())}))


def hold(checkpoint: Path, run_dir: Path, *, copies: bool) -> bool:
    """Links a checkpoint into RUN_DIR/origin; links suffice, since its files never change.

    Copies files that cannot be linked, which is slow; without `copies` it returns False instead.

    Raises:
        CheckpointMissing: the checkpoint does not exist, or was removed meanwhile.
        OSError: the checkpoint can neither be linked nor copied.
    """
    target = run_dir / ORIGIN / "checkpoints" / checkpoint.name
    if target.is_dir():
        return True
    partial = target.with_name(f"partial-{checkpoint.name}-{secrets.token_hex(4)}")
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(checkpoint, partial, copy_function=_link_or_copy if copies else os.link)
        (partial / MANIFEST).stat()  # missing if the checkpoint was being removed meanwhile
        partial.rename(target)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        if not (checkpoint / MANIFEST).is_file():
            raise CheckpointMissing(checkpoint) from None
        if copies:
            raise
        return False
    return True


def fork_errors(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns every refused change between resolved settings: path, value and reason."""
    errors = []
    if len(before["agents"]) != len(now["agents"]):
        counts = len(before["agents"]), len(now["agents"])
        reason = f"the checkpoint holds {counts[0]} agents; a fork has the same, start a new run"
        errors.append({"path": "agents", "value": counts[1], "reason": reason})
    for position, (old, new) in enumerate(zip(before["agents"], now["agents"], strict=False)):
        for name, why in _CHECKPOINT_SETTINGS.items():
            if (was := _value_in_checkpoint(old, name)) != _value_in_checkpoint(new, name):
                errors.append(_error(f"agents.{position}.{name}", was, new[name], why))
    if (was := before["compute"]["dtype"]) != now["compute"]["dtype"]:
        why = "the optimizer's copies of the weights are of its kind"
        errors.append(_error("compute.dtype", was, now["compute"]["dtype"], why))
    return errors


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _value_in_checkpoint(agent: dict[str, Any], name: str) -> Any:
    value = agent[name]
    if name == "lora" and value is not None:
        return {key: list(value[key]) if key == "target_modules" else value[key]
                for key in _LORA_SHAPE}  # fmt: skip
    return value


def _error(path: str, was: Any, value: Any, why: str) -> dict[str, Any]:
    reason = f"the checkpoint was made with {was}: {why}; leave it as it was, or start a new run"
    return {"path": path, "value": value, "reason": reason}
