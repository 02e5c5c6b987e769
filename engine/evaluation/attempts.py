"""Right answers among fresh answers and among repairs, per problem of an evaluation.

A fresh answer is a child of the problem; a repair is a child of a wrong program. A child of a right
one is neither, since there was nothing to repair. Alongside them are the independent samples to the
same problem, which no search chose. Where a repair is right more often than a fresh answer, a tree
pays.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.environments.types import Outcome
from engine.evaluation.measurement import Measurement, verified
from engine.rollout.forest import GrowingTree

Counts = dict[str, list[int]]
"""[tried, right] of `fresh`, `repairs` and `samples`; right is every test, also the private."""


def attempts(measurement: Measurement) -> list[Counts]:
    """Returns the counts of each problem; empty without trees. What failed technically is left
    out."""
    return [
        {
            "fresh": _counted(_children(tree, fresh=True)),
            "repairs": _counted(_children(tree, fresh=False)),
            "samples": _counted(_samples(measurement, row)),
        }
        for row, tree in enumerate(measurement.trees)
    ]


def _children(tree: GrowingTree, *, fresh: bool) -> Iterable[Outcome]:
    """Yields the outcomes of the fresh answers, or of the repairs of wrong programs."""
    for node in tree.verified():
        if not node.is_answer:
            continue
        if node.parent == 0:
            counts = fresh
        else:
            parent = tree.written[node.parent]
            counts = not fresh and parent.is_answer and not parent.verification.passed
        if counts:
            yield node.verification


def _samples(measurement: Measurement, row: int) -> Iterable[Outcome]:
    for rows in (*measurement.single_agent.values(), measurement.team_samples):
        yield from verified(rows[row])


def _counted(outcomes: Iterable[Outcome]) -> list[int]:
    passed = [outcome.passed for outcome in outcomes]
    return [len(passed), sum(passed)]
