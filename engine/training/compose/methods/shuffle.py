"""Pairs of contrasting rows, drawn by their advantages (Shuffle-R1, arXiv 2508.05612).

    per group: advantages in descending order, the k-th paired with the k-th last
    of n pairs the first max(1, floor(keep n)) stay: those of most contrast
    W_j = |A_j1| + |A_j2|,  P_j = W_j / sum of W over the batch
    `rounds` rounds each draw pairs by P, without replacement within a round
Written from published notes on the paper, whose code is unreleased. All rounds together draw as
many pairs as stay, so a pair may be learned from several times, and another not at all.

Ours: a group is the nodes of one policy in one tree, since an update has the rows of one policy;
a remainder of pairs goes to the first rounds; among equal advantages the first row goes first; the
middle row of an odd group, and a single row, are in no pair; pairs of weight 0 are drawn, equally
likely, only when no others are left. The paper normalises advantages over the batch, this takes
them as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from engine.config.base import Settings, Whole
from engine.config.columns import names_of
from engine.config.golden_kind import Case, Kind
from engine.config.misfits import Misfit
from engine.config.schema import RunConfig
from engine.policy.learner.rows import TrainingRow
from engine.training.compose.composer import ComposeContext, Composition, Update

CUTS_TREES = True
Pair = tuple[int, int]
"""Indices of two rows, that of the larger advantage first."""


class Options(Settings):
    """Shuffle-R1."""

    keep: float = Field(0.5, gt=0, le=1)
    """Share of the pairs of a tree that may be drawn, those of most contrast."""
    rounds: Whole = Field(8, ge=1)
    """Rounds in which pairs are drawn, in each of them without replacement."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses trees that have no pair, and advantages that are formed after rows were drawn."""
    if config.search.nodes_per_tree < 2:
        reason = (
            "with training.compose = shuffle: a tree of one node has no pair to learn from; set it "
            "to 2 or more"
        )
        yield Misfit("search.nodes_per_tree", config.search.nodes_per_tree, reason)
    if makes := names_of(config.credit.module("advantage"), "MAKES"):
        reason = (
            f"leaves the advantages of some trees to the loss, by {', '.join(sorted(makes))}; "
            "training.compose = shuffle draws rows by their advantages before that, and would "
            "leave these out: choose another of the two"
        )
        yield Misfit("credit.advantage", config.credit.advantage, reason)


def compose(rows: Sequence[TrainingRow], context: ComposeContext) -> Composition:
    """Returns one update from the drawn pairs, round after round, the rows of a pair as far apart
    as there are minibatches, which get every so manyth row: both are in one of them."""
    options = context.options
    advantages_N = np.array([np.mean(row.advantage) for row in rows])
    groups = [row.tree for row in rows]
    pairs = contrasting_pairs(advantages_N, groups, options.keep)
    drawn = draw(probabilities(advantages_N, pairs), options.rounds, context.rng)
    order = _apart([pairs[pair] for pair in drawn], context.config.training.minibatches)
    whole = contrasting_pairs(advantages_N, groups, 1.0)
    reasons = {
        "unpaired": len(rows) - 2 * len(whole),
        "low_contrast": 2 * (len(whole) - len(pairs)),
        "not_drawn": 2 * (len(pairs) - len(set(drawn))),
    }
    left = {reason: count for reason, count in reasons.items() if count}
    return Composition([Update([rows[index] for index in order])], left)


def contrasting_pairs(
    advantages_N: np.ndarray, groups_N: Sequence[Hashable], keep: float
) -> list[Pair]:
    """Returns the pairs that stay, group after group, of most contrast first."""
    pairs: list[Pair] = []
    for group in dict.fromkeys(groups_N):
        mine = [index for index, other in enumerate(groups_N) if other == group]
        order = sorted(mine, key=lambda index: -advantages_N[index])  # stable: ties stay in order
        matched = list(zip(order[: len(order) // 2], reversed(order), strict=False))
        pairs += matched[: max(1, int(keep * len(matched)))]
    return pairs


def probabilities(advantages_N: np.ndarray, pairs: Sequence[Pair]) -> np.ndarray:
    """Returns P of each pair, (pairs,); equal ones if all advantages are 0."""
    weights = np.abs([[advantages_N[i] for i in pair] for pair in pairs]).sum(axis=-1)
    total = weights.sum()
    return weights / total if total else np.full(len(pairs), 1 / max(1, len(pairs)))


def draw(probabilities_P: np.ndarray, rounds: int, rng: np.random.Generator) -> list[int]:
    """Returns the indices of the drawn pairs: as many as there are pairs, in `rounds` rounds, none
    twice in a round."""
    count = len(probabilities_P)
    sizes = [count // rounds + (number < count % rounds) for number in range(rounds)]
    return [pair for size in sizes if size for pair in _round(probabilities_P, size, rng)]


def _round(probabilities_P: np.ndarray, size: int, rng: np.random.Generator) -> list[int]:
    weighty = np.flatnonzero(probabilities_P)
    drawn = rng.choice(len(probabilities_P), min(size, len(weighty)), False, probabilities_P)
    if len(drawn) == size:
        return drawn.tolist()
    rest = np.flatnonzero(probabilities_P == 0)
    return [*drawn.tolist(), *rng.choice(rest, size - len(drawn), False).tolist()]


def _apart(pairs: Sequence[Pair], distance: int) -> list[int]:
    """Returns the rows of the pairs, those of a pair `distance` apart; closer in the last few."""
    blocks = [pairs[start : start + distance] for start in range(0, len(pairs), distance)]
    return [pair[side] for block in blocks for side in (0, 1) for pair in block]


def _golden(case: Case) -> Any:
    inputs = case["inputs"]
    advantages_N = np.array(inputs["advantages"], dtype=float)
    keep = inputs.get("keep", Options().keep)
    pairs = contrasting_pairs(advantages_N, inputs["groups"], keep)
    return {
        "pairs": [list(pair) for pair in pairs],
        "probabilities": probabilities(advantages_N, pairs).tolist(),
    }


GOLDEN = {"batch_composition": Kind(_golden, "advantages groups", "keep method")}
