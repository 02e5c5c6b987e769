"""One node of a search tree and the Thompson arms of its expansions.

Invariant: a node's arms observe only closed, scored children; GEN, CONT and the children are in
pools: one per agent (agent_first), or a single shared one (node_first).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.config.search import AgentChoice, NodeChoice, Posterior
from engine.search.agents import AgentChooser, make_chooser
from engine.search.children import Children
from engine.search.posteriors import Family, make_posterior

SHARED = "shared"


class NodeState(StrEnum):
    """State of a node between the choice of its parent and its score."""

    OPEN = "open"
    """Being generated or verified: no descent enters it."""
    SCORED = "scored"
    """Closed with a score; it competes."""
    FAILED = "failed"
    """Closed without a score, because verification failed technically; it never competes."""


class Pool:
    """GEN (widen here), CONT (go deeper) and the children that CONT may enter."""

    __slots__ = ("children", "cont", "gen")

    def __init__(self, family: Family):
        self.gen = make_posterior(family)
        self.cont = make_posterior(family)
        self.children = Children(family)


class Arms:
    """Statistics of one expanded node q: its pools, and action_q, the scores by agent."""

    __slots__ = ("agents", "pools")

    def __init__(
        self,
        agents: tuple[str, ...],
        pools: tuple[str, ...],
        family: Posterior,
        choice: AgentChoice = AgentChoice.THOMPSON,
        node_choice: NodeChoice = NodeChoice.THOMPSON,
    ):
        self.agents: AgentChooser = make_chooser(choice, agents, family)
        uniform = node_choice is NodeChoice.UNIFORM
        self.pools = {name: Pool(NodeChoice.UNIFORM if uniform else family) for name in pools}


@dataclass(slots=True)
class SearchNode:
    """A node; node 0 is the root, which has no agent and no score, and may always be expanded."""

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
        """Ids of all children in any state, in the order of creation."""
        return self._children or ()

    def add_child(self, node_id: int) -> None:
        """Appends a new child."""
        # Most nodes stay leaves: a list for each is one more object for the garbage collector.
        if self._children is None:
            self._children = []
        self._children.append(node_id)

    @property
    def arms(self) -> Arms:
        """The node's arms, made at first access: most nodes of a large tree are never expanded."""
        if self._arms is None:
            self._arms = self.make_arms()
        return self._arms
