"""Choosers of the agent that expands a node, from the scores of a whole tree, or of one node.

Invariant: a chooser observes each score once, costs O(agents) per choice, and breaks ties in favour
of the agent that is listed first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, log, sqrt
from typing import Protocol

import numpy as np

from engine.config.thompson import AgentChoice, NodeChoice, Posterior
from engine.search.posteriors import Family, make_posterior, rounded, thompson


class AgentChooser(Protocol):
    """Statistics of each agent's scores and of its nodes in flight, and the choice by them."""

    def begin(self, agent: str) -> None:
        """Records that a node of this agent was opened; `end` always follows."""
        ...

    def end(self, agent: str) -> None:
        """Records that a node of this agent was closed, with a score or without."""
        ...

    def observe(self, agent: str, reward: float) -> None:
        """Takes in the score of a node of this agent, from 0 to 1."""
        ...

    def choose(self, rng: np.random.Generator) -> tuple[str, dict[str, float]]:
        """Returns the chosen agent, and the value by which each one competed."""
        ...

    def recorded(self) -> dict[str, Mapping[str, float]]:
        """Returns the statistics of each agent, as a record of draws holds them: its posterior, or
        its mean score and number of nodes."""
        ...


class ThompsonChooser:
    """One posterior per agent; the largest draw wins (docs/algorithm.md, section 2).

    Nodes in flight change nothing: the randomness of the draws spreads them over the agents.
    """

    def __init__(self, agents: Sequence[str], family: Family):
        self.posteriors = {agent: make_posterior(family) for agent in agents}

    def begin(self, agent: str) -> None:
        pass

    def end(self, agent: str) -> None:
        pass

    def observe(self, agent: str, reward: float) -> None:
        self.posteriors[agent].observe(reward)

    def choose(self, rng: np.random.Generator) -> tuple[str, dict[str, float]]:
        return thompson(self.posteriors, rng)

    def recorded(self) -> dict[str, Mapping[str, float]]:
        return {agent: posterior.recorded() for agent, posterior in self.posteriors.items()}


class UcbChooser:
    """UCB1 (Auer et al. 2002): mean + sqrt(2) sqrt(ln N / n); an agent without nodes first.

    n and N also count nodes in flight (WU-UCT, Liu et al., arXiv 1810.11755); otherwise all nodes
    opened at once would go to one agent. With one in flight this is UCB1 itself.
    """

    def __init__(self, agents: Sequence[str]):
        self._counts = dict.fromkeys(agents, 0)
        self._sums = dict.fromkeys(agents, 0.0)
        self._in_flight = dict.fromkeys(agents, 0)

    def begin(self, agent: str) -> None:
        self._in_flight[agent] += 1

    def end(self, agent: str) -> None:
        self._in_flight[agent] -= 1

    def observe(self, agent: str, reward: float) -> None:
        self._counts[agent] += 1
        self._sums[agent] += reward

    def choose(self, rng: np.random.Generator) -> tuple[str, dict[str, float]]:
        values = self.values()
        return max(values, key=values.__getitem__), values

    def recorded(self) -> dict[str, Mapping[str, float]]:
        return {
            agent: rounded({"mean": self._mean(agent), "nodes": float(n + self._in_flight[agent])})
            for agent, n in self._counts.items()
        }

    def values(self) -> dict[str, float]:
        """Returns the upper bound of every agent; infinite for one without nodes."""
        visits = {agent: n + self._in_flight[agent] for agent, n in self._counts.items()}
        total = sum(visits.values())
        return {
            agent: self._mean(agent) + sqrt(2.0) * sqrt(log(total) / n) if n else inf
            for agent, n in visits.items()
        }

    def _mean(self, agent: str) -> float:
        return self._sums[agent] / max(1, self._counts[agent])


def make_chooser(choice: AgentChoice, agents: Sequence[str], family: Posterior) -> AgentChooser:
    """Returns a chooser without observations."""
    match choice:
        case AgentChoice.UCB:
            return UcbChooser(agents)
        case AgentChoice.UNIFORM:
            return ThompsonChooser(agents, NodeChoice.UNIFORM)
        case AgentChoice.THOMPSON:
            return ThompsonChooser(agents, family)
