"""Credit of whole trees: raw score -> reward of its parts (`rewards.parts`) -> advantage.

Source: docs/algorithm.md, sections 5 and 6.

`assign_credit` credits one tree; `credit_batch` then applies the hooks of a method that compares
the trees of a step, or the tokens of a node.

Invariant: a node without a score is ignored: it is in no baseline, no mean and no filter, and
its own credit is NaN, which would make any loss NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.config.columns import NODE_COLUMNS, ROW_COLUMNS
from engine.config.credit import CreditConfig
from engine.credit import ADVANTAGES
from engine.credit.columns import Group, TreeRecord, columns_of, concatenated
from engine.credit.filters import usable
from engine.credit.group import Advantage, BatchContext, CreditMemory, GroupContext
from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.parts import tree_rewards

_REWARD = ("agents", "parents", "scores", "lengths", "limits")
"""Columns that rewards are made of."""


@dataclass(frozen=True)
class Credit:
    """Aligned with the record's columns; NaN at nodes without a score."""

    shaped_N: np.ndarray
    """Reward of all parts, from which the advantage is computed."""
    advantages_N: np.ndarray
    """Of each node; the mean over its tokens where these have advantages of their own."""
    filtered: bool
    """Whether the tree is dropped before any forward pass."""
    context: GroupContext = field(default_factory=GroupContext)
    """Of the scored nodes, as the method had it."""
    row_columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Numbers of each node that the loss needs, by name."""
    token_advantages: Sequence[np.ndarray] | None = None
    """Of every output token of each node, (L,) each, or (1,) for one of all; empty at nodes without
    a score. None if a node's tokens share its advantage."""
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    """What each part adds to the reward, by name (`engine.credit.rewards.parts.Rewards.terms`)."""
    gates: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Factors of the raw score before shaping, by name."""
    figures: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Numbers that the method reports of each node, by name."""

    def advantage_of(self, row: int) -> float | list[float]:
        """Returns the advantage of all tokens of a node, or of each one."""
        if self.token_advantages is None:
            return float(self.advantages_N[row])
        own_L = self.token_advantages[row]
        return float(own_L[0]) if len(own_L) == 1 else own_L.tolist()

    def columns_of(self, row: int) -> dict[str, float]:
        """Returns the numbers of one node that the loss needs."""
        return {name: float(values_N[row]) for name, values_N in self.row_columns.items()}


def assign_credit(
    tree: TreeRecord,
    config: CreditConfig,
    max_new_tokens: int | Sequence[int],
    memory: CreditMemory | None = None,
    row_columns: Collection[str] = (),
) -> Credit:
    """Returns the credit of every scored node of a tree.

    `max_new_tokens` is the limit of the overlong penalty, one for all nodes or one for each.
    `memory` is the run's, if the method has one; without, the tree is credited by itself.
    `row_columns` are the columns that the loss and the composer need of every row.
    A tree without any score is filtered under any settings: there is nothing to learn.

    Raises:
        ValueError: columns of different lengths, or a scored node whose parent is neither the
            root nor a scored node of the record, or a column that the record lacks.
    """
    tree.check()
    group = _scored(tree, max_new_tokens)
    if not group.rows:
        nothing_N = np.full(len(tree.node_ids), np.nan)
        return Credit(nothing_N, nothing_N.copy(), filtered=True)

    method = ADVANTAGES[config.advantage]
    made = _node_columns(group, method, row_columns)
    nodes = _nodes(group, made)
    rewards = tree_rewards(nodes, config)
    own = {name: values_N for name, values_N in made.items() if name in method.needs}
    context = GroupContext(own, config.options("advantage"), rewards.parts, rewards.weights)
    advantages_N = (memory or method).over_group(rewards.total_N, context)
    made |= _of_rewards(rewards.total_N)
    if method.row_columns:
        made |= method.row_columns(context)
    return Credit(
        _spread(rewards.total_N, group),
        _spread(advantages_N, group),
        filtered=not usable(nodes.scores_N, config),
        context=context,
        row_columns=_spread_each({name: made[name] for name in row_columns}, group),
        terms=_spread_each(rewards.terms, group),
        gates=_spread_each(rewards.gates, group),
        figures=_spread_each(_figures(method, rewards.total_N, advantages_N, context), group),
    )


def _scored(tree: TreeRecord, max_new_tokens: int | Sequence[int]) -> Group:
    """Returns the group of a tree's scored nodes, with a limit of output tokens for each node."""
    count = len(tree.node_ids)
    limits = np.broadcast_to(np.asarray(max_new_tokens), count).tolist()
    return Group(tree, [row for row in range(count) if tree.scores[row] is not None], limits)


def _node_columns(
    group: Group, method: Advantage, row_columns: Collection[str]
) -> dict[str, np.ndarray]:
    """Returns the columns of scored nodes that rewards, the method and the rows are made of."""
    of_rows = ROW_COLUMNS & NODE_COLUMNS.keys() & set(row_columns)
    return columns_of(group, {*_REWARD, *method.needs, *of_rows})


def _figures(
    method: Advantage, rewards_N: np.ndarray, advantages_N: np.ndarray, context: GroupContext
) -> Mapping[str, np.ndarray]:
    """Returns the figures of a group's nodes.

    Raises:
        ValueError: one is not a number of each node, or has no title.
    """
    if method.figures is None:
        return {}
    figures = method.figures(rewards_N, advantages_N, context)
    if untitled := sorted(set(figures) - method.charted):
        raise ValueError(f"figures of the advantage: {', '.join(untitled)} is not in its FIGURES")
    for name, values_N in figures.items():
        if np.shape(values_N) != np.shape(rewards_N):
            raise ValueError(
                f"figures of the advantage: {name} has the shape {np.shape(values_N)}; give one "
                f"number for each of {len(rewards_N)} nodes"
            )
    return figures


def _of_rewards(rewards_N: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the columns that rewards give (`engine.config.columns.REWARD_COLUMNS`)."""
    return {
        "rewards": rewards_N,
        "group_rewards": np.full(len(rewards_N), rewards_N.mean()),
        "group_sizes": np.full(len(rewards_N), float(len(rewards_N))),
    }


def _nodes(group: Group, columns: Mapping[str, np.ndarray]) -> Nodes:
    """Returns the scored nodes as parts of rewards take them; what a record lacks is empty."""

    def further(name: str) -> list[Any]:
        values = group.tree.further.get(name, ())
        return [values[row] for row in group.rows] if len(values) else []

    return Nodes(
        columns["agents"].tolist(),
        columns["parents"],
        columns["scores"],
        columns["lengths"],
        columns["limits"],
        further("outcomes"),
        further("texts"),
        further("programs"),
        further("grades"),
    )


def _spread(values_N: np.ndarray, group: Group) -> np.ndarray:
    """Returns a column of the scored nodes as one of all nodes, NaN elsewhere."""
    column_N = np.full(len(group.tree.node_ids), np.nan)
    column_N[group.rows] = values_N
    return column_N


def _spread_each(columns: Mapping[str, np.ndarray], group: Group) -> dict[str, np.ndarray]:
    return {name: _spread(values_N, group) for name, values_N in columns.items()}


def credit_batch(credits: Sequence[Credit], config: CreditConfig) -> list[Credit]:
    """Returns the credits of a step's trees after the method's hooks over a batch and over tokens,
    as far as it has them.

    The batch is every scored node of the trees that are not filtered, of all agents. The nodes of
    filtered trees are not in it and get 0.
    """
    method = ADVANTAGES[config.advantage]
    normalised = _over_batch(credits, method, config) if method.over_batch else list(credits)
    return [_over_tokens(credit, method) for credit in normalised]


def _over_batch(credits: Sequence[Credit], method: Advantage, config: CreditConfig) -> list[Credit]:
    rows_by_tree = [
        np.flatnonzero(~np.isnan(credit.advantages_N) & (not credit.filtered)) for credit in credits
    ]
    sizes = [len(rows) for rows in rows_by_tree]
    if method.over_batch is None or not any(sizes):
        return list(credits)

    def together(columns_N: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([c[rows] for c, rows in zip(columns_N, rows_by_tree, strict=True)])

    context = BatchContext(
        concatenated(
            [one.context.columns for one, size in zip(credits, sizes, strict=True) if size]
        ),
        config.options("advantage"),
        rewards_N=together([credit.shaped_N for credit in credits]),
        trees_N=np.repeat(np.arange(len(sizes)), sizes),
    )
    normalised_N = method.over_batch(together([credit.advantages_N for credit in credits]), context)
    parts = np.split(normalised_N, np.cumsum(sizes)[:-1])
    return [
        replace(credit, advantages_N=_scattered(credit.advantages_N, rows, part))
        for credit, rows, part in zip(credits, rows_by_tree, parts, strict=True)
    ]


def _over_tokens(credit: Credit, method: Advantage) -> Credit:
    """Returns a tree's credit after the hook over tokens, if it has one."""
    if method.over_tokens is None or credit.filtered:
        return credit
    rows = np.flatnonzero(~np.isnan(credit.advantages_N))
    own = method.over_tokens(credit.advantages_N[rows], credit.shaped_N[rows], credit.context)
    by_token = [np.zeros(0)] * len(credit.advantages_N)
    advantages_N = credit.advantages_N.copy()
    for row, advantages_L in zip(rows, own, strict=True):
        by_token[row] = advantages_L
        advantages_N[row] = advantages_L.mean() if len(advantages_L) else 0.0
    return replace(credit, advantages_N=advantages_N, token_advantages=by_token)


def _scattered(advantages_N: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns `values` at `rows`, 0 at other scored nodes, NaN at nodes without a score."""
    filled_N = np.where(np.isnan(advantages_N), np.nan, 0.0)
    filled_N[rows] = values
    return filled_N
