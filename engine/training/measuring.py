"""Measuring: what policies compute of the nodes of a step for its credit, by need.

Invariant: a column is measured only if the advantage needs it, and then with the weights from which
the update of these nodes starts: each policy answers after the updates that it was sent before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.credit.columns import TreeRecord
from engine.policy.learner.rows import TrainingRow
from engine.rollout.forest import GrowingTree
from engine.training.team import Team

ENTROPIES = "entropies"


def with_entropies(
    team: Team, trees: Sequence[GrowingTree], records: Sequence[TreeRecord]
) -> list[TreeRecord]:
    """Returns the records with the column `entropies`, by the policy that wrote each node."""
    places: dict[str, list[tuple[int, int]]] = {}
    rows: dict[str, list[TrainingRow]] = {}
    for number, (tree, record) in enumerate(zip(trees, records, strict=True)):
        nodes = zip(record.node_ids, record.further["owners"], strict=True)
        for index, (node, owner) in enumerate(nodes):
            places.setdefault(owner, []).append((number, index))
            rows.setdefault(owner, []).append(_row(tree, node))
    measured = dict(zip(rows, team.entropies(rows), strict=True))
    columns: list[list[Any]] = [[None] * len(record.node_ids) for record in records]
    for owner, values in measured.items():
        for (number, index), entropies_L in zip(places[owner], values, strict=True):
            columns[number][index] = entropies_L
    return [
        replace(record, further={**record.further, ENTROPIES: column})
        for record, column in zip(records, columns, strict=True)
    ]


def _row(tree: GrowingTree, node: int) -> TrainingRow:
    written = tree.written[node].answer.generation
    return TrainingRow(
        list(written.prompt_ids), list(written.output_ids), list(written.logprobs), 0.0,
        written.policy_version, written.temperature,
    )  # fmt: skip
