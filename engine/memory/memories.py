"""All memories of one run: shown every step as one, and saved under one key of the checkpoint.

    {"training.sampler": {"method": "learnability", "state": {...}}, ...}

The outer key is the setting that names the method, and `method` its value: state goes back only to
the method that wrote it. A column of nodes that is made of a memory has a key of its own name. A
run whose methods remember nothing has an empty object there, and a checkpoint from before memories
has no key at all; both resume with empty memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.memory.protocol import Memory, OnFork, SeenTree


@dataclass(frozen=True)
class Kept:
    """One memory and the name of its method."""

    method: str
    memory: Memory


class Memories(Mapping[str, Memory]):
    """Memories by the setting that names their method."""

    def __init__(self, kept: Mapping[str, Kept]):
        self._kept = dict(kept)

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Shows all memories the trees of a step."""
        for kept in self._kept.values():
            kept.memory.observe(step, trees)

    def state(self) -> dict[str, Any]:
        """Returns everything that the memories hold, as plain JSON."""
        return {
            path: {"method": kept.method, "state": kept.memory.state()}
            for path, kept in self._kept.items()
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores a result of `state`; a memory that it lacks stays empty."""
        for path, kept in self._kept.items():
            saved = state.get(path)
            if saved and saved["method"] == kept.method:
                kept.memory.restore(saved["state"])

    def fork(self, state: Mapping[str, Any], same_problems: bool) -> None:
        """Restores what a fork takes over of its parent's `state`."""
        on_fork = {OnFork.KEEP, *([OnFork.SAME_PROBLEMS] if same_problems else [])}
        taken = {path: s for path, s in state.items() if self._on_fork(path) in on_fork}
        self.restore(taken)

    def _on_fork(self, path: str) -> OnFork:
        return self._kept[path].memory.on_fork if path in self._kept else OnFork.LEAVE

    def __getitem__(self, path: str) -> Memory:
        return self._kept[path].memory

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)
