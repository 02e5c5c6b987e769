"""LENS: wrong answers are punished by the confidence behind them (arXiv 2510.08696, section 5.1).

    p_v = exp(mean over tokens of the generator's log-probabilities)
    D   = 2 max p                                       if no node of the tree is right
    D   = max(G / sum over right nodes of 1/p, 2 max p) otherwise, G nodes
    r'_v = r_v - (1 - score_v) (1/G) p_v / (D - p_v)    for wrong nodes, r_v for right ones
    A_v = `credit.lens.alpha` (r'_v - mean)             if no node is right
    A_v = (r'_v - mean) / (std + 1e-6), as GRPO         otherwise
The paper writes the sum over right nodes with the probabilities of whole sequences; with these the
first argument of max would never bind, so p, normalised by length, stands there too (ours). An
answer without tokens has p = 0 and keeps its reward. A repair's confidence is that under its own
prompt. Trees whose nodes are all wrong are learned from: `credit.dynamic_filter`, which would drop
them, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.config.golden_kind import Case, Kind, options
from engine.config.misfits import Misfit, filtered_trees
from engine.credit.group import GroupContext, standardised

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

NEEDS = {"scores", "logprobs"}
EPSILON = 1e-6


class Options(Settings):
    """LENS."""

    alpha: float = Field(0.25, ge=0, le=10)
    """Weight of the centred rewards of a tree without a right node."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses the filter of trees whose nodes are all wrong."""
    yield from filtered_trees(config, "credit.advantage", "learns where every answer is wrong")


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the advantages of GRPO of the lowered rewards, or these centred and weighted where no
    node is right."""
    lowered_N = lowered(rewards_N, context)
    if np.any(context["scores"] >= 1.0):
        return standardised(lowered_N, EPSILON)
    return context.options.alpha * (lowered_N - lowered_N.mean())


def lowered(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the rewards r', those of wrong answers lowered by their confidence."""
    scores_N = context["scores"]
    p_N = np.array([np.exp(np.mean(own)) if len(own) else 0.0 for own in context["logprobs"]])
    punished_N = (scores_N < 1.0) & (p_N > 0.0)
    if not punished_N.any():
        return rewards_N
    penalty_N = (1.0 - scores_N) / len(p_N) * p_N / (_bound(p_N, scores_N >= 1.0) - p_N)
    return np.where(punished_N, rewards_N - penalty_N, rewards_N)


def _bound(p_N: np.ndarray, right_N: np.ndarray) -> float:
    """Returns D, twice the largest p or more."""
    highest = 2.0 * float(p_N.max())
    certain_N = p_N[right_N & (p_N > 0.0)]
    if not len(certain_N):
        return highest
    return max(len(p_N) / float(np.sum(1.0 / certain_N)), highest)


def _golden_rewards(case: Case) -> Any:
    inputs = case["inputs"]
    scores_N = np.array(inputs["scores"], dtype=float)
    trees_N, logprobs = np.array(inputs["tree_ids"]), inputs["log_probs"]
    rewards_N, advantages_N = np.zeros_like(scores_N), np.zeros_like(scores_N)
    own_options = options("advantages", "lens", inputs)
    for tree in np.unique(trees_N):
        rows = np.flatnonzero(trees_N == tree)
        own = np.empty(len(rows), dtype=object)
        own[:] = [np.array(logprobs[row]) for row in rows]
        context = GroupContext({"scores": scores_N[rows], "logprobs": own}, own_options)
        rewards_N[rows] = lowered(scores_N[rows], context)
        advantages_N[rows] = over_group(scores_N[rows], context)
    return {"rewards": rewards_N.tolist(), "advantages": advantages_N.tolist()}


GOLDEN = {
    "shaped_reward": Kind(
        _golden_rewards, "scores tree_ids log_probs method", "", "method", "advantages"
    )
}
