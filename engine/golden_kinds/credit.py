"""Kinds about credit: shaping, penalty, advantages and the filter."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.credit import ADVANTAGES
from engine.credit.filters import informative
from engine.credit.group import GroupContext
from engine.credit.overlong import overlong_penalty
from engine.credit.shaping import tree_shaping
from engine.golden_kinds.case import Case, named

# Beside our names, those that other libraries give the normalised group advantage.
ESTIMATORS = {**ADVANTAGES, "group_norm": ADVANTAGES["mars2"], "grpo": ADVANTAGES["mars2"]}


def shaping(case: Case) -> Any:
    inputs = case["inputs"]
    rewards, parents = np.array(inputs["rewards"], dtype=float), np.array(inputs["parent"], int)
    return tree_shaping(rewards, parents, inputs["gamma"], inputs["lambda"]).tolist()


def advantage(case: Case) -> Any:
    inputs = case["inputs"]
    method = named(ESTIMATORS, inputs.get("estimator", "mars2"), "estimator")
    rewards = np.array(inputs["rewards"], dtype=float)
    size = inputs.get("group_size", len(rewards))
    groups = [rewards[start : start + size] for start in range(0, len(rewards), size)]
    return [value for group in groups for value in method(group, _flat(group)).tolist()]


def _flat(rewards_N: np.ndarray) -> GroupContext:
    """The methods that cases know look at rewards only: one agent, all below the root."""
    return GroupContext(("0",) * len(rewards_N), np.full(len(rewards_N), -1))


def overlong(case: Case) -> Any:
    inputs = case["inputs"]
    penalised = np.array(inputs["rewards"], dtype=float) + overlong_penalty(
        np.array(inputs["lengths"]),
        inputs["generate_max_len"],
        inputs["overlong_buffer_len"],
        inputs.get("factor", 1.0),
    )
    advantages = ADVANTAGES["mars2"](penalised, _flat(penalised))
    return {"penalised_rewards": penalised.tolist(), "advantages": advantages.tolist()}


def dynamic_filter(case: Case) -> Any:
    low, high = case["inputs"]["range"]
    return [informative(scores, low, high) for scores in case["inputs"]["trees"]]
