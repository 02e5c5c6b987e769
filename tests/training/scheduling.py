"""What a run's log says of its scheduler: bounds that hold on any machine, and that one which
starves trees, waits for all of them or keeps weights back does not keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.config.training import TrainingConfig
from engine.events.vocabulary import Event

OLDEST = 2
"""Steps over whose ends a tree may be carried: it is further than those that are planted after it,
and is written and verified with them."""


def carried_too_far(events: Sequence[Event]) -> dict[int, int]:
    """The steps over whose ends trees were carried, by the tree, where they are more than
    `OLDEST`. What a resume cut off begins anew, as another tree."""
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
    """Most trees that were under way at a time."""
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
    """By how many updates the nodes of these steps' batches were behind, on average."""
    chosen = set(steps)
    updates = (event.payload for event in events if event.kind == "agent.update")
    return [update["lag"] for update in updates if update["step"] in chosen]


def scheduling_faults(events: Sequence[Event], plan: TrainingConfig) -> list[str]:
    """What a log of a run with extra trees says against its scheduler; empty if nothing."""
    faults = []
    if far := carried_too_far(events):
        faults.append(f"trees are starved: {far}")
    limit = plan.trees_per_step + plan.extra_trees
    if (most := most_at_once(events)) > limit:
        faults.append(f"{most} trees at once, of {limit}")
    left = carried(events)
    # A driver that is starved for a while may see all trees of a step end at once, but not of most.
    if max(left) > plan.extra_trees or sum(map(bool, left)) <= len(left) // 2:
        faults.append(f"steps wait for trees that they need not: {left} are left")
    return faults
