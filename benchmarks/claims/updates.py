"""Figures of the updates of a training, counted in its events."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events.timeline import surviving_events
from engine.events.vocabulary import Event

PPO_LOW, PPO_HIGH = 0.2, 0.28
"""PPO's usual clip (DAPO, arXiv 2503.14476), wherever the run itself clips."""


def update_figures(events: Iterable[Event]) -> dict[str, float]:
    """Returns the mean share of tokens whose ratio was clipped, over the updates that had rows; the
    share of the same tokens that PPO's clip of a ratio per token would have clipped; and the
    seconds per step. None of them for a log without a step."""
    clipped: list[float] = []
    advantages: dict[tuple[int | None, int | None], float] = {}
    tokens = beyond = steps = 0
    seconds = 0.0
    for event in surviving_events(events):
        payload = event.payload
        match event.kind:
            case "node.credit":
                advantages[event.tree, event.node] = payload["advantage"]
            case "agent.update" if payload["nodes"]:
                clipped.append(payload["clip_fraction"])
            case "tree.learned":
                for node in payload["nodes"]:
                    advantage = advantages[event.tree, node["node"]]
                    tokens += len(node["ratio"])
                    beyond += sum(_is_beyond(ratio, advantage) for ratio in node["ratio"])
            case "step.end":
                steps, seconds = payload["step"], payload["training_seconds"]
    figures = {"training/clip_fraction": sum(clipped) / len(clipped)} if clipped else {}
    if tokens:
        figures["training/ppo_clip_fraction"] = beyond / tokens
    return figures | ({"training/seconds_per_step": seconds / steps} if steps else {})


def _is_beyond(ratio: float, advantage: float) -> bool:
    """Whether PPO's surrogate takes the limit instead of this ratio."""
    return ratio > 1 + PPO_HIGH if advantage > 0 else advantage < 0 and ratio < 1 - PPO_LOW
