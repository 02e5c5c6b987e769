"""Shaped rewards equal the raw scores: shaping is on and changes nothing.

Sees: in the last `STEPS` steps, `FEWEST_TREES` or more trees have different scores, and in none of
them any shaped reward differs from its node's score. Only where `credit.shaping_gamma` is above 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding
from engine.health.windows import last

TITLE = "Shaped equal to raw"
ADVICE = (
    "Check that the engine that sends these events shapes rewards (credit.shaping_gamma, "
    "credit.shaping_lambda); set credit.shaping_gamma = 0 if that is not intended."
)
STEPS = 5
FEWEST_TREES = 10
"""Wherever scores of a tree differ, some node differs from its siblings or its parent, and shaping
moves its reward; ten trees are no rounding error."""


def find(history: History) -> Iterator[Finding]:
    recent = last(history.steps, STEPS)
    differing = sum(step.differing for step in recent)
    if not history.setup.shapes or len(recent) < STEPS or differing < FEWEST_TREES:
        return
    if not any(step.reshaped for step in recent):
        yield Finding(
            f"In all {differing} trees with different scores of the last {STEPS} steps, every "
            "shaped reward is the score itself.",
            recent[0].step,
            figures={"trees": differing},
        )
