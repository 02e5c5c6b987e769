"""Golden kinds of credit: shaping, penalty, advantages and the filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.config.credit import CreditConfig
from engine.config.golden_kind import Case, lookup, options
from engine.credit import ADVANTAGES
from engine.credit.filters import informative
from engine.credit.group import BatchContext, GroupContext
from engine.credit.rewards.overlong import overlong_penalty
from engine.credit.shaping import tree_shaping

GROUP_NORM = "group_norm"
"""What other libraries call the group advantage of mars2."""


def shaping(case: Case) -> Any:
    inputs = case["inputs"]
    rewards, parents = np.array(inputs["rewards"], dtype=float), np.array(inputs["parent"], int)
    return tree_shaping(rewards, parents, *_weights(inputs)).tolist()


def _weights(inputs: dict[str, Any]) -> tuple[float, float]:
    defaults = CreditConfig()
    gamma = inputs.get("gamma", defaults.shaping_gamma)
    return gamma, inputs.get("lambda", defaults.shaping_lambda)


def advantage(case: Case) -> Any:
    inputs = case["inputs"]
    name = inputs.get("estimator", "mars2")
    name = "mars2" if name == GROUP_NORM else name
    method = lookup(ADVANTAGES.every(), name, "estimator")
    own = options("advantages", name, inputs)
    rewards = np.array(inputs["rewards"], dtype=float)
    count = len(rewards)
    agents = np.array(inputs.get("agents") or ["0"] * count)
    scores = np.array(inputs.get("scores", inputs["rewards"]), dtype=float)
    lengths = np.array(inputs.get("lengths") or [1] * count)
    limits = np.array(inputs.get("limits") or lengths)
    advantages = np.zeros(count)
    for group in _groups(inputs, count):
        columns = (scores[group], lengths[group], limits[group], own)
        context = GroupContext(tuple(agents[group]), np.full(len(group), -1), *columns)
        advantages[group] = method.over_group(rewards[group], context)
    if method.over_batch:
        advantages = method.over_batch(advantages, BatchContext(lengths, own))
    return advantages.tolist()


def _groups(inputs: dict[str, Any], count: int) -> list[list[int]]:
    """Returns the indices of each group's nodes: by tree id, by consecutive `group_size`, or all
    in one."""
    size = inputs.get("group_size", count)
    trees = inputs.get("tree_ids") or [node // size for node in range(count)]
    groups: dict[Any, list[int]] = {}
    for node, tree in zip(range(count), trees, strict=True):
        groups.setdefault(tree, []).append(node)
    return list(groups.values())


def _flat(agents: Sequence[str]) -> GroupContext:
    """Returns a context in which all nodes are children of the root: the methods of cases use no
    tree."""
    return GroupContext(tuple(agents), np.full(len(agents), -1))


def overlong(case: Case) -> Any:
    inputs = case["inputs"]
    penalised = np.array(inputs["rewards"], dtype=float) + overlong_penalty(
        np.array(inputs["lengths"]),
        inputs["generate_max_len"],
        inputs["overlong_buffer_len"],
        inputs.get("factor", 1.0),
    )
    advantages = ADVANTAGES["mars2"].over_group(penalised, _flat(["0"] * len(penalised)))
    return {"penalised_rewards": penalised.tolist(), "advantages": advantages.tolist()}


def dynamic_filter(case: Case) -> Any:
    low, high = case["inputs"].get("range", (0.0, 1.0))
    return [informative(scores, low, high) for scores in case["inputs"]["trees"]]
