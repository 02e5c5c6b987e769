"""The socket of memory: whatever a method keeps across the steps of a run.

A method (a sampler, an allocator, a strategy, an advantage) that knows more at step 2 than at
step 1 keeps it in a `Memory`. The trainer shows it the trees of every step, and saves and restores
it with the checkpoint, under the path of the setting that names its method (`memories.py`).

Invariants of every memory:
- What it holds is a function of the settings and of what it was shown, in order; random numbers
  come from a generator seeded by seed and position, so that none has to be saved.
- `state` is plain JSON, and `restore` of it gives a memory that goes on bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class OnFork(StrEnum):
    """What becomes of a memory when another run forks from the checkpoint that holds it."""

    KEEP = "keep"
    """The fork goes on with it: it is about the agents, whose weights the fork has."""
    SAME_PROBLEMS = "same problems"
    """... if the fork has the same problems: it knows them by their numbers."""
    LEAVE = "leave"
    """The fork begins with an empty one."""


@dataclass(frozen=True)
class SeenTree:
    """A tree of a step as memories see it, filtered ones included: its closed nodes as parallel
    columns, in the order of creation, without the root."""

    problem: int
    """Number of its problem in the training split."""
    nodes: Sequence[int]
    parents: Sequence[int]
    """Ids of nodes; 0 is the root."""
    agents: Sequence[str]
    scores: Sequence[float | None]
    """Raw scores, 0 to 1; None where verification failed technically."""
    filtered: bool
    """Whether no agent learns from it."""

    def attempts(self) -> list[float]:
        """Returns the scores of the first attempts, the children of the root; a repair answers
        another prompt."""
        pairs = zip(self.parents, self.scores, strict=True)
        return [score for parent, score in pairs if parent == 0 and score is not None]


class Memory(Protocol):
    """What a method keeps."""

    @property
    def on_fork(self) -> OnFork:
        """What a fork takes over."""
        ...

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Takes in all trees of a step, once and in order, after their credit."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns everything that it holds, as plain JSON."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces what it holds by a result of `state`."""
        ...
