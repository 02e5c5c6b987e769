"""Golden kinds of credit: shaping, penalty, advantages and the filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.config.credit import CreditConfig
from engine.credit import ADVANTAGES
from engine.credit.filters import informative
from engine.credit.group import BatchContext, GroupContext
from engine.credit.methods.rae import RoleBaselines
from engine.credit.overlong import overlong_penalty
from engine.credit.shaping import tree_shaping
from engine.golden.kinds.case import Case, lookup

# Our names, and the one that other libraries give the group advantage of mars2.
ESTIMATORS = {**ADVANTAGES, "group_norm": ADVANTAGES["mars2"]}


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
    method = lookup(ESTIMATORS, inputs.get("estimator", "mars2"), "estimator")
    rewards = np.array(inputs["rewards"], dtype=float)
    agents = inputs.get("agents") or ["0"] * len(rewards)
    advantages = np.zeros(len(rewards))
    for group in _groups(inputs, len(rewards)):
        context = _flat([agents[node] for node in group])
        advantages[group] = method.over_group(rewards[group], context)
    if method.over_batch:
        lengths = np.array(inputs.get("lengths") or [1] * len(rewards))
        advantages = method.over_batch(advantages, BatchContext(lengths))
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


def role_baselines(case: Case) -> Any:
    inputs = case["inputs"]
    baselines = RoleBaselines(inputs["decay"], inputs.get("baselines"))
    advantages = [
        {
            role: baselines.advantage(f"{episode['game']}/{role}", reward)
            for role, reward in episode["returns"].items()
        }
        for episode in inputs["episodes"]
    ]
    return {"advantages": advantages, "baselines": baselines.baselines}


def dynamic_filter(case: Case) -> Any:
    low, high = case["inputs"].get("range", (0.0, 1.0))
    return [informative(scores, low, high) for scores in case["inputs"]["trees"]]
