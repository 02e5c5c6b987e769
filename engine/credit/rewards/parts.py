"""The reward of every node of a tree, from its named parts (`engine.credit.rewards.reward`).

Invariants:
- Without any part in use, and without gates, the reward is the shaped score, bit for bit.
- A part has one value per node, finite or NaN, which counts 0; anything else fails the step by the
  part's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.config.credit import CreditConfig
from engine.credit.rewards import REWARDS
from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.reward import PartInUse, PartOptions
from engine.credit.shaping import tree_shaping

TESTS = "tests"
"""Name of the shaped score among the parts."""


@dataclass(frozen=True)
class Rewards:
    """Rewards of the nodes of one tree, and how they are made."""

    total_N: np.ndarray
    parts: Mapping[str, np.ndarray]
    """Values of the parts by name, before their weights; the shaped score first."""
    weights: Mapping[str, float]
    gates: Mapping[str, np.ndarray]
    """Factors of the score, from 0 to 1, by name."""

    @property
    def terms(self) -> dict[str, np.ndarray]:
        """What each part adds to the total, by name; empty where no part alongside the overlong
        penalty is in use, which then is the difference of total and shaped score."""
        if all(name == TESTS or REWARDS[name].in_use for name in self.parts):
            return {}
        return {name: self.weights[name] * values_N for name, values_N in self.parts.items()}


def parts_in_use(config: CreditConfig) -> dict[str, PartInUse]:
    """Returns the parts that settings use, by name: the engine's in the order of the registry, then
    those of other packages by name."""
    given = config.__pydantic_extra__ or {}
    others = sorted(
        name
        for name, options in given.items()
        if isinstance(options, PartOptions) and name not in REWARDS.own
    )
    used = {name: _in_use(name, config) for name in [*REWARDS.own, *others]}
    return {name: one for name, one in used.items() if one is not None}


def tree_rewards(nodes: Nodes, config: CreditConfig) -> Rewards:
    """Returns the rewards of the scored nodes of a tree.

    Raises:
        ValueError: a part gives an infinite number, or not one per node; or a gate gives none from
            0 to 1.
    """
    parts: dict[str, np.ndarray] = {}
    weights: dict[str, float] = {TESTS: 1.0}
    gates: dict[str, np.ndarray] = {}
    for name, one in parts_in_use(config).items():
        values_N = _values(name, one, nodes)
        if one.gate:
            gates[name] = _checked_gate(name, values_N)
        if one.weight:
            parts[name], weights[name] = values_N, one.weight
    scores_N = nodes.scores_N
    for gate_N in gates.values():
        scores_N = scores_N * gate_N
    tests_N = tree_shaping(scores_N, nodes.parents_N, config.shaping_gamma, config.shaping_lambda)
    total_N = tests_N
    for name, values_N in parts.items():
        total_N = total_N + weights[name] * values_N
    return Rewards(total_N, {TESTS: tests_N, **parts}, weights, gates)


def _in_use(name: str, config: CreditConfig) -> PartInUse | None:
    if in_use := REWARDS[name].in_use:
        return in_use(config)
    options = (config.__pydantic_extra__ or {}).get(name)
    if not isinstance(options, PartOptions) or not (options.weight or options.gate):
        return None
    return PartInUse(options.weight, options.gate, options)


def _values(name: str, one: PartInUse, nodes: Nodes) -> np.ndarray:
    values_N = np.asarray(REWARDS[name].part(nodes, one.options), dtype=np.float64)
    if values_N.shape != nodes.scores_N.shape or np.isinf(values_N).any():
        raise ValueError(
            f"credit.{name}: the part gives {values_N.tolist()} for {len(nodes.scores_N)} nodes; "
            "it must give one finite number, or NaN, for each: correct it, or set its weight to 0"
        )
    return np.nan_to_num(values_N)


def _checked_gate(name: str, values_N: np.ndarray) -> np.ndarray:
    if ((values_N < 0.0) | (values_N > 1.0)).any():
        raise ValueError(
            f"credit.{name}.gate = true: the part gives {values_N.tolist()}, and a gate must be "
            "from 0 to 1; set gate to false and give the part a weight"
        )
    return values_N
