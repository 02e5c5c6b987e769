"""Solved trees by tag and by difficulty of their problem, over the last `steps` steps.

A tree is solved if a node has the raw score 1; it counts for each tag of its problem. Tags without
a tree in the window have no value. Of more than `most` tags, the most frequent of the whole run are
charted; of equally frequent ones, the first by name.

Source: success by knowledge point, We-Math 2.0, arXiv 2508.10433.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import Field

from engine.config.base import Settings
from engine.config.methods import Figure
from engine.evaluation.gauges.gauge import TAGS, GaugeContext, Numbers, StepEvents

NEEDS = {TAGS}
FIGURES = {
    "tag": Figure("Solved trees, by tag of the problem", unit="share", section="Learning"),
    "difficulty": Figure("Solved trees, by difficulty of the problem", unit="share",
                         section="Learning"),
}  # fmt: skip


class Options(Settings):
    """Solved trees by tag and difficulty."""

    steps: int = Field(10, ge=1, le=10_000)
    """Number of steps whose trees count: a step has few of each tag."""
    most: int = Field(8, ge=1, le=64)
    """Number of tags that are charted."""


@dataclass(frozen=True, slots=True)
class _Tree:
    tags: tuple[str, ...]
    difficulty: int
    solved: bool


@dataclass
class _State:
    steps: deque[list[_Tree]]
    """Trees of the last steps."""
    seen: Counter[str] = field(default_factory=Counter)
    """Number of trees of the whole run, by tag."""


def state(options: Options) -> _State:
    """Returns the state before the first step."""
    return _State(deque(maxlen=options.steps))


def numbers(step: StepEvents, context: GaugeContext) -> Numbers:
    """Returns the shares of solved trees in the window."""
    kept: _State = context.state
    trees = [
        _Tree(
            tuple(dict.fromkeys(tree.opened.tags or ())), tree.opened.difficulty, tree.closed.solved
        )
        for tree in step.trees
    ]
    kept.steps.append(trees)
    kept.seen.update(tag for tree in trees for tag in tree.tags)
    window = [tree for earlier in kept.steps for tree in earlier]
    frequent = sorted(kept.seen, key=lambda tag: (-kept.seen[tag], tag))[: context.options.most]
    levels = sorted({tree.difficulty for tree in window if tree.difficulty})
    return {
        "tag": {
            tag: _solved(tree for tree in window if tag in tree.tags) for tag in sorted(frequent)
        },
        "difficulty": {
            str(level): _solved(tree for tree in window if tree.difficulty == level)
            for level in levels
        },
    }


def _solved(trees: Iterable[_Tree]) -> float | None:
    solved = [tree.solved for tree in trees]
    return sum(solved) / len(solved) if solved else None
