"""Presets: common changes, applied with one click, that work on any recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    name: str
    title: str
    help: str
    overrides: dict[str, Any]


PRESETS = (
    Preset(
        "smoke",
        "Smoke test",
        "Two small steps, to see that all of it works",
        {
            "training.steps": 2,
            "training.trees_per_step": 4,
            "training.checkpoint_every": 1,
            "problems.validation": 8,
            "problems.test": 8,
        },
    ),
    Preset("short", "Ten minutes", "Stops after ten minutes of training", {"training.minutes": 10}),
    Preset("wide", "Wide trees", "Trees of 32 nodes, four at once",
           {"search.nodes_per_tree": 32, "search.nodes_in_flight": 4}),
    Preset("exact", "Repeatable", "The same bits each time, on the CPU",
           {"compute.deterministic": True, "training.minutes": None}),
    Preset("safe", "Keep more", "A checkpoint at every step, ten of them kept",
           {"training.checkpoint_every": 1, "training.keep_checkpoints": 10}),
)  # fmt: skip
