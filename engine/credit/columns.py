"""Columns of a group: all data of its nodes that a method may need, made by one function.

A tree is recorded once (`TreeRecord`); `columns_of` makes those columns of its scored nodes that
somebody needs, by the names of `engine.config.columns.NODE_COLUMNS`. A batch's columns are those of
its groups, concatenated. New data of nodes is one more entry of both tables, and no method changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.credit.embeddings import embeddings
from engine.credit.shaping import ROOT
from engine.events.states import Verdict

Columns = Mapping[str, np.ndarray]
"""(N,) each, by name; embeddings are (N, EMBEDDING_WIDTH). Texts, and data of tokens (an array for
each node), are of dtype object."""


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
    further: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Further data by the name of a column (`problems`, `pass_rates`, `owners`, `prompts`,
    `tokens`, `logprobs`, `entropies`, `programs`), or of what columns and parts of rewards are
    made of (`outcomes`, `texts`, `grades`): one value for each node. Only methods that need them
    read them."""

    def check(self) -> None:
        """Raises `ValueError` for columns of different lengths."""
        count = len(self.node_ids)
        own = (self.parents, self.agents, self.scores, self.lengths, *self.further.values())
        if any(len(column) != count for column in own):
            sizes = [count, *map(len, own)]
            raise ValueError(f"columns of {sizes} nodes: give one value per node")


@dataclass(frozen=True)
class Group:
    """The nodes of a record that have a score."""

    tree: TreeRecord
    rows: Sequence[int]
    """Their positions in the record."""
    limits: Sequence[int]
    """Most output tokens of every node of the record."""

    def picked(self, values: Sequence[Any], dtype: Any = None) -> np.ndarray:
        """Returns the values of the scored nodes; those of dtype object stay what they are."""
        column = np.empty(len(self.rows), dtype=object)
        column[:] = [values[row] for row in self.rows]
        return column if dtype is object else np.array(column.tolist(), dtype=dtype)

    def further(self, name: str) -> Sequence[Any]:
        """Returns data that a record may lack.

        Raises:
            ValueError: this one does.
        """
        if name not in self.tree.further:
            raise ValueError(f"the tree records no {name}, which a method needs; add the column")
        return self.tree.further[name]

    def ragged(self, name: str) -> np.ndarray:
        """Returns an array for each node, of dtype object."""
        column = np.empty(len(self.rows), dtype=object)
        for index, row in enumerate(self.rows):
            column[index] = np.asarray(self.further(name)[row])
        return column


def columns_of(group: Group, names: Collection[str]) -> dict[str, np.ndarray]:
    """Returns these columns of a group, in the order of `rows`.

    Raises:
        ValueError: the record lacks one of them, or a scored node's parent is neither the root nor
            a scored node of the record.
    """
    return {name: MAKERS[name](group) for name in names}


def concatenated(groups: Sequence[Columns]) -> dict[str, np.ndarray]:
    """Returns the columns of several groups, one after the other; parents are indices among all
    nodes."""
    if not groups:
        return {}
    together = {name: np.concatenate([one[name] for one in groups]) for name in groups[0]}
    if "parents" in together:
        sizes = [len(one["parents"]) for one in groups]
        starts_N = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
        parents_N = together["parents"]
        together["parents"] = np.where(parents_N == ROOT, ROOT, parents_N + starts_N)
    return together


def _parents(group: Group) -> np.ndarray:
    """Returns each scored node's parent as an index among the scored nodes, -1 for the root."""
    tree = group.tree
    position = {tree.node_ids[row]: index for index, row in enumerate(group.rows)}
    position[0] = ROOT
    try:
        return np.array([position[tree.parents[row]] for row in group.rows], dtype=np.int64)
    except KeyError as error:
        raise ValueError(
            f"parent = {error.args[0]} of a scored node has no score; "
            "only scored nodes may be expanded"
        ) from None


def _depths(group: Group) -> np.ndarray:
    above = dict(zip(group.tree.node_ids, group.tree.parents, strict=True))
    depths: list[int] = []
    for row in group.rows:
        node, depth = group.tree.node_ids[row], 0
        while node != 0:
            node, depth = above[node], depth + 1
        depths.append(depth)
    return np.array(depths)


def _turns(group: Group) -> np.ndarray:
    """Returns each node's turn: the node above is the turn before if its episode goes on."""
    outcomes = dict(zip(group.tree.node_ids, group.further("outcomes"), strict=True))
    above = dict(zip(group.tree.node_ids, group.tree.parents, strict=True))
    turns: list[int] = []
    for row in group.rows:
        node, turn = above[group.tree.node_ids[row]], 1
        while node != 0 and outcomes[node].verdict is Verdict.PLAYED:
            node, turn = above[node], turn + 1
        turns.append(turn)
    return np.array(turns)


MAKERS: Mapping[str, Callable[[Group], np.ndarray]] = {
    "agents": lambda group: group.picked(group.tree.agents, object),
    "owners": lambda group: group.picked(group.further("owners"), object),
    "problems": lambda group: group.picked(group.further("problems")),
    "parents": _parents,
    "depths": _depths,
    "turns": _turns,
    "pass_rates": lambda group: group.picked(group.further("pass_rates"), np.float64),
    "scores": lambda group: group.picked(group.tree.scores, np.float64),
    "lengths": lambda group: group.picked(group.tree.lengths),
    "limits": lambda group: group.picked(group.limits),
    "prompts": lambda group: group.ragged("prompts"),
    "tokens": lambda group: group.ragged("tokens"),
    "logprobs": lambda group: group.ragged("logprobs"),
    "entropies": lambda group: group.ragged("entropies"),
    "programs": lambda group: group.picked(group.further("programs"), object),
    "embeddings": lambda group: embeddings(
        group.picked(group.further("programs"), object).tolist()
    ),
}
"""How each column is made."""
