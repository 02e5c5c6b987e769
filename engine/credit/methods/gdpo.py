"""GDPO: each part of the reward is normalised by itself (arXiv 2601.05242).

    z_vk = (r_vk - mean_k) / (std_k + 1e-4), over the nodes of one tree; 0 where all are equal
    s_v  = sum over k of w_k z_vk, with the weights of the parts
    A_v  = (s_v - mean) / (std + 1e-4), over all nodes of the step; std with ddof 1
From NVlabs/GDPO, whose variant for TRL weighs nodes equally in the last step; that for verl weighs
tokens. Combinations of parts with equal sums keep different advantages. A part without a value
counts 0. The tests, of weight 1, are the shaped score; the overlong penalty is a part too.

Trees of equal scores may differ in other parts: a run with `credit.dynamic_filter`, which drops
them, warns of it, as does one whose reward has no parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.config.golden_kind import Case, Kind
from engine.config.misfits import Misfit, filtered_trees, parts_in_use
from engine.credit.group import BatchContext, GroupContext, standardised

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

EPSILON = 1e-4


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Warns of a reward of one part, and of the filter of trees that differ in other parts."""
    if not parts_in_use(config) and not config.credit.overlong_buffer_tokens:
        reason = (
            "normalises each part of the reward by itself, and there is one part, the score; give "
            "another a weight, such as credit.format.weight, or choose grpo"
        )
        yield Misfit("credit.advantage", config.credit.advantage, reason, refused=False)
        return
    why = "would learn from the other parts of their rewards"
    yield from filtered_trees(config, "credit.advantage", why, refused=False)


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the weighted sum of the normalised parts; `rewards_N`, their plain sum, is the only
    part of a context without parts."""
    parts = context.parts or {"": rewards_N}
    sums_N = np.zeros_like(rewards_N)
    for name, values_N in parts.items():
        weight = context.weights.get(name, 1.0)
        sums_N = sums_N + weight * standardised(np.nan_to_num(values_N), EPSILON)
    return sums_N


def over_batch(advantages_N: np.ndarray, context: BatchContext) -> np.ndarray:
    """Normalises over the nodes of the step: mean 0, and deviation 1 unless all are equal."""
    return standardised(advantages_N, EPSILON)


def _golden(case: Case) -> Any:
    inputs = case["inputs"]
    parts = {name: np.array(one, dtype=float) for name, one in inputs["components"].items()}
    trees = np.array(inputs["tree_ids"])
    sums_N = np.zeros(len(trees))
    for tree in dict.fromkeys(inputs["tree_ids"]):
        nodes = np.flatnonzero(trees == tree)
        group = GroupContext(
            parts={name: values_N[nodes] for name, values_N in parts.items()},
            weights=inputs["weights"],
        )
        sums_N[nodes] = over_group(np.zeros(len(nodes)), group)
    return over_batch(sums_N, BatchContext(rewards_N=sums_N)).tolist()


GOLDEN = {"component_advantage": Kind(_golden, "components weights tree_ids", "method")}
