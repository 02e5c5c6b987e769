"""Discounted Thompson sampling: agents begin each tree with what earlier trees say of them.

Source: Raj and Kalyani, Taming Non-stationary Bandits, arXiv 1707.09727. After each step

    S_a <- gamma S_a + sum of the scores of a's nodes,   F_a <- gamma F_a + sum of (1 - score)
and in a tree of the next step an agent's posterior begins with Beta(1/2 + S_a, 1/2 + F_a) instead
of Beta(1/2, 1/2). Agents learn, so what they scored long ago says little of them: hence gamma
(`search.discounted.gamma`). Ours: the prior goes to the choosers of the agent at the root and of
the whole tree; below the root, and between nodes, it is `thompson`. Searches and evaluations know
no earlier trees, and begin with Beta(1/2, 1/2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from engine.config.base import Settings
from engine.config.misfits import Misfit
from engine.config.search import SearchConfig
from engine.config.thompson import AgentChoice, Posterior
from engine.memory.protocol import OnFork, SeenTree
from engine.search.agents import AgentChooser, ThompsonChooser
from engine.search.posteriors import BetaPosterior
from engine.search.strategies.methods.thompson import Thompson
from engine.search.strategy import Growing

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

PRIOR = 0.5
"""Jeffreys' prior."""


class Options(Settings):
    """Discounted Thompson sampling."""

    gamma: float = Field(0.5, ge=0, le=1)
    """Share of what was known of the agents that a step leaves."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses choices of agents that do not draw from these sums; warns where there is none."""
    search = config.search
    if search.posterior is not Posterior.BETA:
        reason = (
            "with search.strategy = discounted, which sums successes and failures; set it to beta, "
            "or search.strategy to thompson"
        )
        yield Misfit("search.posterior", str(search.posterior), reason)
    if search.agent_choice is not AgentChoice.THOMPSON:
        reason = (
            "chooses agents without the posteriors that search.strategy = discounted begins with; "
            "set it to thompson, or search.strategy to thompson"
        )
        yield Misfit("search.agent_choice", str(search.agent_choice), reason)
    if len(config.agents) == 1:
        reason = "is about the choice of agents, and there is one; choose thompson"
        yield Misfit("search.strategy", search.strategy, reason, refused=False)


def memory(search: SearchConfig) -> TeamScores:
    """Returns the memory of a run that begins."""
    return TeamScores(search.options("strategy").gamma)


def strategy(growing: Growing) -> Thompson:
    """Returns Thompson sampling whose agents begin with the run's scores."""
    thompson = Thompson(growing)
    for chooser in (thompson.tree_chooser, thompson.arms(growing.nodes[0]).agents):
        _prepare(chooser, growing.memory)
    return thompson


def _prepare(chooser: AgentChooser, scores: TeamScores) -> None:
    if isinstance(chooser, ThompsonChooser):
        for agent in chooser.posteriors:
            won, lost = scores.of(agent)
            chooser.posteriors[agent] = BetaPosterior(PRIOR + won, PRIOR + lost)


class TeamScores:
    """Memory of the discounted sums of every agent's scores."""

    on_fork = OnFork.KEEP

    def __init__(self, gamma: float):
        self._gamma = gamma
        self._sums: dict[str, tuple[float, float]] = {}

    def of(self, agent: str) -> tuple[float, float]:
        """Returns S and F of an agent."""
        return self._sums.get(agent, (0.0, 0.0))

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        sums = {a: (self._gamma * won, self._gamma * lost) for a, (won, lost) in self._sums.items()}
        for tree in trees:
            for agent, score in zip(tree.agents, tree.scores, strict=True):
                if score is not None:
                    won, lost = sums.get(agent, (0.0, 0.0))
                    sums[agent] = won + score, lost + (1.0 - score)
        self._sums = sums

    def state(self) -> dict[str, Any]:
        return {"sums": {agent: list(both) for agent, both in self._sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._sums = {agent: (won, lost) for agent, (won, lost) in state["sums"].items()}
