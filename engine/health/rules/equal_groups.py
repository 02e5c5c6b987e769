"""Nothing to compare: every tree of the last steps has equal scores, so no node has an advantage.

Sees: of the trees of the last steps, `STEPS` or as many more as have `FEWEST_TREES`, a share of
`SHARE` or more has equal scores and no advantage other than 0. Of a trainer that logs the share of
such groups alone, the mean over `FEWEST_TREES` steps, which have one group each at least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.health.history import History, Step
from engine.health.rule import Finding
from engine.health.windows import last, mean

TITLE = "All groups equal"
ADVICE = (
    "Choose problems of another difficulty (python -m engine select), set credit.score to "
    "fraction, grow more nodes per tree (search.nodes_per_tree), or turn on credit.refill_rounds; "
    "if every tree fails, look at the prompts and at the answers first."
)
GENERAL_ADVICE = (
    "Choose problems of another difficulty, score answers by a fraction instead of pass or fail, "
    "sample more answers per prompt, or draw further prompts until groups differ (dynamic "
    "sampling); if every group fails, look at the prompts and at the answers first."
)
STEPS = 5
"""One step may draw only hard problems."""
FEWEST_TREES = 40
"""If one tree in ten were informative, 38 of 40 would be equal or worse in a fifth of cases; if one
in five, once in 126."""
SHARE = 0.95
"""One informative tree of 20 is too little to learn from; runs that learn have 0.84 at most over
five steps."""


def find(history: History) -> Iterator[Finding]:
    if not any(step.trees for step in history.steps):
        yield from _by_shares(history)
        return
    recent = _recent(list(history.steps))
    trees, flat = sum(step.trees for step in recent), sum(step.flat for step in recent)
    if len(recent) < STEPS or trees < FEWEST_TREES or flat < SHARE * trees:
        return
    failed = sum(step.failed for step in recent)
    yield Finding(
        f"{flat} of {trees} trees of the last {len(recent)} steps have equal scores; in {failed} "
        "of them every node scored 0.",
        recent[0].step,
        figures={"share": flat / trees, "trees": trees, "failed": failed, "limit": SHARE},
    )


def _by_shares(history: History) -> Iterator[Finding]:
    known = [step for step in history.steps if math.isfinite(step.flat_share)]
    recent = last(known, FEWEST_TREES)
    share = mean(step.flat_share for step in recent)
    if len(recent) == FEWEST_TREES and share >= SHARE:
        yield Finding(
            f"On average {share:.0%} of the groups of the last {len(recent)} steps have equal "
            "rewards.",
            recent[0].step,
            figures={"share": share, "steps": len(recent), "limit": SHARE},
        )


def _recent(steps: list[Step]) -> list[Step]:
    """Returns the newest steps, as few as have both `STEPS` and `FEWEST_TREES`."""
    trees = 0
    for count, step in enumerate(reversed(steps), start=1):
        trees += step.trees
        if count >= STEPS and trees >= FEWEST_TREES:
            return steps[-count:]
    return steps
