"""One node of a search tree and the Thompson arms that its expansions compete by.

Invariant: a node's arms know only closed, scored children; GEN, CONT and the children are kept
in pools: one per agent (agent_first), or a single shared one (node_first).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.config.search import AgentChoice, Posterior
from engine.search.agents import AgentChooser, make_chooser
from engine.search.children import Children
from engine.search.posteriors import make_posterior

SHARED = "shared"


class NodeState(StrEnum):
    """Where a node stands between the choice of its parent and its score."""

    OPEN = "open"
    """Being written or verified: it may not be descended into."""
    SCORED = "scored"
    """Closed with a score; it competes."""
    FAILED = "failed"
    """Closed without a score, because verification failed technically; it takes no part."""


class Pool:
    """GEN (widen here), CONT (go deeper) and the children that CONT leads to."""

    __slots__ = ("children", "cont", "gen")

    def __init__(self, family: Posterior):
        self.gen = make_posterior(family)
        self.cont = make_posterior(family)
        self.children = Children(family)


class Arms:
    """All that is known at one expanded node q: its pools, and action_q, what each agent scored."""

    __slots__ = ("agents", "pools")

    def __init__(
        self,
        agents: tuple[str, ...],
        pools: tuple[str, ...],
        family: Posterior,
        choice: AgentChoice = AgentChoice.THOMPSON,
    ):
        self.agents: AgentChooser = make_chooser(choice, agents, family)
        self.pools = {name: Pool(family) for name in pools}


@dataclass(slots=True)
class SearchNode:
    """Node 0 is the root: no agent, no score, and always there to be expanded."""

    id: int
    parent: int | None
    depth: int
    agent: str | None
    make_arms: Callable[[], Arms]
    state: NodeState = NodeState.OPEN
    score: float | None = None
    _children: list[int] | None = None
    _arms: Arms | None = None

    @property
    def children(self) -> Sequence[int]:
        """Ids of all children, in the order of creation, whatever their state."""
        return self._children or ()

    def add_child(self, node_id: int) -> None:
        """Append a child that was created."""
        # Most nodes stay leaves: a list for each is one more object for the garbage collector.
        if self._children is None:
            self._children = []
        self._children.append(node_id)

    @property
    def arms(self) -> Arms:
        """Made when they are first asked for: most nodes of a large tree are never expanded."""
        if self._arms is None:
            self._arms = self.make_arms()
        return self._arms
