"""Mirrors of runs in other trackers: one module per tracker with a class `Tracker`, and its line in
`TRACKERS`.

Invariant: a tracker itself says which event of the run it holds last, so a mirror that was cut off
continues there, and no event is written twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

TRACKERS = {"mlflow": "mlflow", "tensorboard": "", "trackio": "trackio", "wandb": "wandb"}
"""The package that each needs, which is also the extra; none where files are written here. By name
of the module in this package."""

TREE_COLUMNS = ("node", "parent", "agent", "text", "reward")
TEXT = TREE_COLUMNS.index("text")


@dataclass(frozen=True)
class Mirrored:
    """The run as a tracker shows it; `into` is a project, an experiment or a folder."""

    id: str
    name: str
    url: str
    into: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """What one event says; `time` in Unix seconds."""

    seq: int
    time: float
    step: int
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Columns and rows by name."""
    histograms: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Edges and counts by name."""
    images: dict[str, dict[str, str]] = field(default_factory=dict)
    """Format, data in base64 and caption by name."""
    trees: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Columns and rows (node, parent, agent, text, reward) by name; the first row is the
    problem."""
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Characters of its images and trees, the parts that can be large."""
        rows = (row for one in self.trees.values() for row in one["rows"])
        return sum(len(one["data"]) for one in self.images.values()) + sum(
            len(row[TEXT]) for row in rows
        )


class Tracker(Protocol):
    """A run in another tracker. Any exception of its means that nothing can be written now."""

    def __init__(self, run: Mirrored): ...

    def head(self) -> int:
        """Returns the seq of the last event that it holds, 0 without one."""
        ...

    def write(self, entries: list[Entry]) -> None:
        """Writes entries in order of seq; once it returns, or `end` does, it holds them."""
        ...

    def end(self, state: str) -> None:
        """Ends the tracker's run as finished, failed or stopped; empty: it is only left here."""
        ...
