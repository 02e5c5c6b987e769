"""Credit of whole trees: raw score -> reward of its parts (`rewards.parts`) -> advantage.

Source: docs/algorithm.md, sections 5 and 6.

`assign_credit` credits one tree; `credit_batch` then applies the hook of a method that compares the
trees of a step.

Invariant: a node without a score is ignored: it is in no baseline, no mean and no filter, and
its own credit is NaN, which would make any loss NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.config.credit import CreditConfig
from engine.credit import ADVANTAGES
from engine.credit.filters import usable
from engine.credit.group import BatchContext, CreditMemory, GroupContext
from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.outcome import Outcome
from engine.credit.rewards.parts import tree_rewards
from engine.credit.shaping import ROOT


@dataclass(frozen=True)
class TreeRecord:
    """The closed nodes of one tree as parallel columns, in any order, without the root."""

    node_ids: Sequence[int]
    parents: Sequence[int]
    """Node ids; 0 is the root."""
    agents: Sequence[str]
    scores: Sequence[float | None]
    """Raw scores; None where verification failed technically."""
    lengths: Sequence[int]
    """Output tokens."""
    outcomes: Sequence[Outcome] = ()
    """Verdicts, for parts of rewards that read them; as are the next two."""
    texts: Sequence[str] = ()
    programs: Sequence[str] = ()


@dataclass(frozen=True)
class Credit:
    """Aligned with the record's columns; NaN at nodes without a score."""

    shaped_N: np.ndarray
    """Reward of all parts, from which the advantage is computed."""
    advantages_N: np.ndarray
    filtered: bool
    """Whether the tree is dropped before any forward pass."""
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    """What each part adds to the reward, by name (`engine.credit.rewards.parts.Rewards.terms`)."""
    gates: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Factors of the raw score before shaping, by name."""


def assign_credit(
    tree: TreeRecord,
    config: CreditConfig,
    max_new_tokens: int | Sequence[int],
    memory: CreditMemory | None = None,
) -> Credit:
    """Returns the credit of every scored node of a tree.

    `max_new_tokens` is the limit of the overlong penalty, one for all nodes or one for each.
    `memory` is the run's, if the method has one; without, the tree is credited by itself.
    A tree without any score is filtered under any settings: there is nothing to learn.

    Raises:
        ValueError: columns of different lengths, or a scored node whose parent is neither the
            root nor a scored node of the record.
    """
    count = len(tree.node_ids)
    columns = (tree.parents, tree.agents, tree.scores, tree.lengths)
    if any(len(column) != count for column in columns):
        raise ValueError(f"columns of {[count, *map(len, columns)]} nodes: give one value per node")
    scored = [row for row in range(count) if tree.scores[row] is not None]
    shaped_N, advantages_N = np.full(count, np.nan), np.full(count, np.nan)
    if not scored:
        return Credit(shaped_N, advantages_N, filtered=True)

    nodes = _nodes(tree, scored, np.broadcast_to(np.asarray(max_new_tokens), count))
    rewards = tree_rewards(nodes, config)
    context = GroupContext(
        tuple(nodes.agents_N),
        nodes.parents_N,
        nodes.scores_N,
        nodes.lengths_N,
        nodes.limits_N,
        config.options("advantage"),
        rewards.parts,
        rewards.weights,
    )
    shaped_N[scored] = rewards.total_N
    over_group = (memory or ADVANTAGES[config.advantage]).over_group
    advantages_N[scored] = over_group(rewards.total_N, context)
    filtered = not usable(nodes.scores_N, config)
    terms, gates = (_whole(one, scored, count) for one in (rewards.terms, rewards.gates))
    return Credit(shaped_N, advantages_N, filtered, terms, gates)


def _nodes(tree: TreeRecord, scored: list[int], limits: np.ndarray) -> Nodes:
    """Returns the scored nodes as parts of rewards take them; columns that a record lacks are
    empty."""

    def of_scored(column: Sequence[Any]) -> list[Any]:
        return [column[row] for row in scored] if len(column) else []

    return Nodes(
        of_scored(tree.agents),
        _positions(tree, scored),
        np.array(of_scored(tree.scores), dtype=np.float64),
        np.array(of_scored(tree.lengths)),
        limits[scored],
        of_scored(tree.outcomes),
        of_scored(tree.texts),
        of_scored(tree.programs),
    )


def _whole(
    columns: Mapping[str, np.ndarray], scored: list[int], count: int
) -> dict[str, np.ndarray]:
    """Returns columns of the scored nodes as columns of all, NaN at the others."""
    whole = {name: np.full(count, np.nan) for name in columns}
    for name, values_N in columns.items():
        whole[name][scored] = values_N
    return whole


def credit_batch(
    trees: Sequence[TreeRecord], credits: Sequence[Credit], config: CreditConfig
) -> list[Credit]:
    """Returns the credits of a step's trees after the method's hook over a batch, if it has one.

    The batch is every scored node of the trees that are not filtered, of all agents. The nodes of
    filtered trees are not in it and get 0.
    """
    over_batch = ADVANTAGES[config.advantage].over_batch
    if over_batch is None:
        return list(credits)
    rows_by_tree = [
        np.flatnonzero(~np.isnan(credit.advantages_N) & (not credit.filtered)) for credit in credits
    ]
    lengths_N = [
        np.asarray(tree.lengths)[rows] for tree, rows in zip(trees, rows_by_tree, strict=True)
    ]
    batched_N = [
        credit.advantages_N[rows] for credit, rows in zip(credits, rows_by_tree, strict=True)
    ]
    if not any(map(len, rows_by_tree)):
        return list(credits)
    context = BatchContext(np.concatenate(lengths_N), config.options("advantage"))
    normalised_N = over_batch(np.concatenate(batched_N), context)
    parts = np.split(normalised_N, np.cumsum([len(rows) for rows in rows_by_tree])[:-1])
    return [
        replace(credit, advantages_N=_scattered(credit.advantages_N, rows, part))
        for credit, rows, part in zip(credits, rows_by_tree, parts, strict=True)
    ]


def _scattered(advantages_N: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns `values` at `rows`, 0 at other scored nodes, NaN at nodes without a score."""
    filled_N = np.where(np.isnan(advantages_N), np.nan, 0.0)
    filled_N[rows] = values
    return filled_N


def _positions(tree: TreeRecord, scored: list[int]) -> np.ndarray:
    """Returns each scored node's parent as an index among the scored nodes, -1 for the root."""
    position = {tree.node_ids[row]: index for index, row in enumerate(scored)}
    position[0] = ROOT
    try:
        return np.array([position[tree.parents[row]] for row in scored], dtype=np.int64)
    except KeyError as error:
        raise ValueError(
            f"parent = {error.args[0]} of a scored node has no score; "
            "only scored nodes may be expanded"
        ) from None
