"""Choosers of the agent that expands a node, from the scores of a whole tree.

Invariant: a chooser sees each score once, costs O(agents) per choice, and breaks ties in favour
of the agent that was named first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, sqrt
from typing import Protocol

import numpy as np

from engine.config import Posterior
from engine.search.posteriors import make_posterior, thompson


class AgentChooser(Protocol):
    """Tree-wide knowledge of what each agent scores."""

    def observe(self, agent: str, reward: float) -> None: ...

    def choose(self, rng: np.random.Generator) -> tuple[str, dict[str, float]]:
        """The agent to use, and the value by which each one competed."""
        ...


class ThompsonChooser:
    """One posterior per agent; the largest draw wins (mars2.md, section 2, node_first)."""

    def __init__(self, agents: Sequence[str], family: Posterior):
        self.posteriors = {agent: make_posterior(family) for agent in agents}

    def observe(self, agent: str, reward: float) -> None:
        self.posteriors[agent].observe(reward)

    def choose(self, rng: np.random.Generator) -> tuple[str, dict[str, float]]:
        return thompson(self.posteriors, rng)


class UcbChooser:
    """UCB1 (Auer et al. 2002): mean + sqrt(2) sqrt(ln N / n); an agent without scores first."""

    def __init__(self, agents: Sequence[str]):
        self._counts = dict.fromkeys(agents, 0)
        self._sums = dict.fromkeys(agents, 0.0)

    def observe(self, agent: str, reward: float) -> None:
        self._counts[agent] += 1
        self._sums[agent] += reward

    def choose(self, rng: np.random.Generator) -> tuple[str, dict[str, float]]:
        values = self.values()
        return max(values, key=values.__getitem__), values

    def values(self) -> dict[str, float]:
        """The upper bound of every agent; infinite where nothing is known."""
        total = sum(self._counts.values())
        return {
            agent: self._sums[agent] / n + sqrt(2.0) * sqrt(log(total) / n) if n else inf
            for agent, n in self._counts.items()
        }
