"""Checks of a run's log against its scheduler: bounds that hold on any machine.

A scheduler that starves trees, waits for all of them or withholds weights violates them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.config.training import TrainingConfig
from engine.events.vocabulary import Event

OLDEST = 2
"""Number of step ends over which a tree may be carried: it is ahead of trees planted later, and is
generated and verified with them."""


def carried_too_far(events: Sequence[Event]) -> dict[int, int]:
    """{tree: number of step ends over which it was carried}, where that exceeds `OLDEST`. A tree
    that a resume cut off starts again as another tree."""
    ages: Counter[int] = Counter()
    open_trees: set[int] = set()
    for event in events:
        if event.kind == "tree.open":
            open_trees.add(event.tree)
        elif event.kind == "tree.close":
            open_trees.discard(event.tree)
        elif event.kind == "run.resumed":
            open_trees.clear()
        elif event.kind == "step.end":
            ages.update(open_trees)
    return {tree: age for tree, age in ages.items() if age > OLDEST}


def most_at_once(events: Sequence[Event]) -> int:
    """Largest number of trees in flight at a time."""
    now = most = 0
    for event in events:
        now += (event.kind == "tree.open") - (event.kind == "tree.close")
        now = 0 if event.kind == "run.resumed" else now
        most = max(most, now)
    return most


def carried(events: Sequence[Event]) -> list[int]:
    """Trees that each step left to the next."""
    return [event.payload["carried_trees"] for event in events if event.kind == "step.end"]


def lags(events: Sequence[Event], steps: Iterable[int]) -> list[float]:
    """Average number of updates by which the nodes in these steps' batches lagged."""
    chosen = set(steps)
    updates = (event.payload for event in events if event.kind == "agent.update")
    return [update["lag"] for update in updates if update["step"] in chosen]


def scheduling_errors(events: Sequence[Event], plan: TrainingConfig) -> list[str]:
    """Violations in the log of a run with extra trees; empty if there are none."""
    problems = []
    if far := carried_too_far(events):
        problems.append(f"trees are starved: {far}")
    limit = plan.trees_per_step + plan.extra_trees
    if (most := most_at_once(events)) > limit:
        problems.append(f"{most} trees at once, of {limit}")
    left = carried(events)
    # A driver that gets no CPU for a while may see all trees of some steps end at once, but not of
    # most.
    if max(left) > plan.extra_trees or sum(map(bool, left)) <= len(left) // 2:
        problems.append(f"steps wait for trees that they need not: {left} are left")
    return problems
