"""The shared search tree: Thompson sampling over agents and nodes (docs/algorithm.md, section 2).

Invariants:
- Nodes are numbered in the order of creation; node 0 is the root, the problem statement.
- Only the root and scored nodes are expanded; open and failed nodes never compete.
- `select` changes only the generator's state and costs O(depth), times at most the groups
  of children with equal posteriors where a node has many (`engine.search.children`);
  `close` costs O(depth). Neither visits the rest of the tree.
- With one expansion in flight at a time this is the sequential algorithm, draw for draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from engine.config.search import AgentChoice, NodeChoice, Posterior, SelectionOrder
from engine.search.agents import AgentChooser, make_chooser
from engine.search.depth import depth_weight
from engine.search.node import SHARED, Arms, NodeState, Pool, SearchNode
from engine.search.posteriors import DIGITS, rounded


@dataclass(frozen=True)
class Expansion:
    """The decision that `agent` generates a child of `parent`.

    `draws` is JSON-safe: `{"levels": [...]}`, one entry per visited node, root first, each with
    `node`, and where they were drawn `agents` (draw, or finite upper bound, per agent), `agent`,
    `gen`, `cont`, `children` (draw per child id, the largest first; in a wide pool, see
    `engine.search.children`, only that of the entered child) and `choice`: "gen" for the last
    entry, else the id of the entered child. A level without a child to enter has no `gen` and
    `cont`: it expands without a draw. `known` holds the parameters of the posterior behind each of
    these draws, under the same names, and `weight` the factor on the draw of `gen`, if depth-guided
    exploration is on.
    """

    parent: int
    agent: str
    depth: int
    """Depth of the new child."""
    draws: dict[str, Any]
    node: int | None = None
    """Id of the child, once it is open."""

    def opened(self, node: int) -> Expansion:
        """Returns the same expansion with the id of its node."""
        return Expansion(self.parent, self.agent, self.depth, self.draws, node)


class SearchTree:
    """One tree of one problem.

    `agent_first`: at every visited node the agent is drawn from that node's action posteriors, then
    GEN against CONT of that agent, then one of that agent's children (the "stack" strategy of
    AB-MCTS-A). Because each level draws the agent anew, one agent can repair another's program; a
    single draw for the whole descent could not do that.
    `node_first`: GEN against CONT, one of each per node, then one of all children of the node; the
    agent is drawn last, from its scores in the whole tree (as TreeQuest does). In both orders GEN
    competes with CONT alone, never with a child. With one agent both are the same algorithm.

    `choice` selects the agent by a draw, by UCB1 on the same scores, or uniformly; `node_choice`
    uniform draws GEN, CONT and children uniformly.
    `rho` enables the depth-guided exploration of MARS²-T+ (`engine.search.depth`). Nodes at
    `max_depth` are never expanded; 1 makes a flat group, all nodes children of the root.
    """

    def __init__(
        self,
        agents: Sequence[str],
        posterior: Posterior,
        order: SelectionOrder,
        rng: np.random.Generator,
        rho: float | None = None,
        choice: AgentChoice = AgentChoice.THOMPSON,
        max_depth: int | None = None,
        node_choice: NodeChoice = NodeChoice.THOMPSON,
    ):
        if not agents or len(set(agents)) < len(agents):
            raise ValueError(f"agents = {list(agents)!r}: name at least one, each only once")
        self.agents = tuple(agents)
        self.nodes: list[SearchNode] = []
        self.in_flight = 0
        """Number of open nodes."""
        self.tree_chooser: AgentChooser = make_chooser(choice, self.agents, posterior)
        self._per_agent = order is SelectionOrder.AGENT_FIRST
        # A node's own chooser of agents is used in agent_first only.
        by_node = choice if self._per_agent else AgentChoice.THOMPSON
        pools = self.agents if self._per_agent else (SHARED,)
        # One for all nodes, and without the tree: nodes hold no reference to it, so a tree is freed
        # with its last reference, without the garbage collector.
        self._make_arms = partial(Arms, self.agents, pools, posterior, by_node, node_choice)
        self._rng = rng
        self._rho = rho
        self._max_depth = max_depth
        self._add(parent=None, depth=0, agent=None, state=NodeState.SCORED)

    def select(self) -> Expansion:
        """Returns the next expansion: its parent and its agent."""
        levels: list[dict[str, Any]] = []
        node = self.nodes[0]
        while True:
            level: dict[str, Any] = {"node": node.id, "known": {}}
            levels.append(level)
            agent = self._choose_agent(node.arms.agents, level) if self._per_agent else None
            pool = node.arms.pools[agent or SHARED]
            if self._widens(node, pool, level):
                break
            child, draws = pool.children.choose(self._rng)
            level["choice"] = child
            level["children"], level["known"]["children"] = pool.children.recorded(draws)
            node = self.nodes[child]
        level["choice"] = "gen"
        agent = agent or self._choose_agent(self.tree_chooser, level)
        return Expansion(node.id, agent, node.depth + 1, {"levels": levels})

    def open(self, expansion: Expansion) -> int:
        """Creates the node of an expansion; returns its id.

        Raises:
            ValueError: unknown agent, or a parent that is not the root or a scored node.
        """
        if expansion.agent not in self.agents:
            raise ValueError(f"agent = {expansion.agent!r}: choose one of {', '.join(self.agents)}")
        if not 0 <= expansion.parent < len(self.nodes):
            raise ValueError(f"parent = {expansion.parent}: no such node")
        parent = self.nodes[expansion.parent]
        if parent.state is not NodeState.SCORED:
            raise ValueError(
                f"parent = {parent.id}: it is {parent.state}, only scored nodes expand"
            )
        node = self._add(parent.id, parent.depth + 1, expansion.agent, NodeState.OPEN)
        parent.add_child(node.id)
        self.in_flight += 1
        for chooser, agent in self._choosers(node):
            chooser.begin(agent)
        return node.id

    def close(self, node_id: int, score: float | None) -> None:
        """Records a node's score, from 0 to 1; None if verification failed technically.

        Raises:
            ValueError: the node is not open, or the score is out of range.
        """
        node = self.nodes[node_id]
        if node.state is not NodeState.OPEN:
            raise ValueError(f"node {node_id} is {node.state}; only an open node can be closed")
        if score is not None and not (math.isfinite(score) and 0.0 <= score <= 1.0):
            raise ValueError(
                f"score = {score!r} of node {node_id}: give a value from 0 to 1, or None"
            )
        self.in_flight -= 1
        for chooser, agent in self._choosers(node):
            chooser.end(agent)
        node.score = score
        node.state = NodeState.FAILED if score is None else NodeState.SCORED
        if score is not None:
            self._credit(node, score)

    def _choosers(self, node: SearchNode) -> Iterator[tuple[AgentChooser, str]]:
        """Yields every chooser that observes a node's score, with the agent credited there."""
        assert node.agent is not None
        yield self.tree_chooser, node.agent
        while node.parent is not None:
            assert node.agent is not None
            parent = self.nodes[node.parent]
            yield parent.arms.agents, node.agent
            node = parent

    def _credit(self, node: SearchNode, score: float) -> None:
        """Applies the update rule: GEN at the parent, then CONT on every edge up to the root."""
        assert node.parent is not None and node.agent is not None
        self.tree_chooser.observe(node.agent, score)
        parent = self.nodes[node.parent]
        self._pool(parent, node.agent).gen.observe(score)
        self._observe_child(parent, node, score)
        below = parent
        while below.parent is not None:
            above = self.nodes[below.parent]
            assert below.agent is not None
            self._pool(above, below.agent).cont.observe(score)
            self._observe_child(above, below, score)
            below = above

    def _observe_child(self, parent: SearchNode, child: SearchNode, score: float) -> None:
        assert child.agent is not None
        self._pool(parent, child.agent).children.observe(child.id, score)
        parent.arms.agents.observe(child.agent, score)

    def _pool(self, node: SearchNode, agent: str) -> Pool:
        return node.arms.pools[agent if self._per_agent else SHARED]

    def _widens(self, node: SearchNode, pool: Pool, level: dict[str, Any]) -> bool:
        if not len(pool.children) or node.depth + 1 == self._max_depth:
            return True
        gen, cont = pool.gen.draw(self._rng), pool.cont.draw(self._rng)
        if self._rho is not None:
            weight = depth_weight(node.depth, len(node.children), self._rho)
            gen *= weight
            level["weight"] = round(weight, DIGITS)
        level["known"] |= {"gen": pool.gen.recorded(), "cont": pool.cont.recorded()}
        level |= {"gen": round(gen, DIGITS), "cont": round(cont, DIGITS)}
        return gen >= cont

    def _choose_agent(self, chooser: AgentChooser, level: dict[str, Any]) -> str:
        if len(self.agents) == 1:
            return self.agents[0]
        agent, values = chooser.choose(self._rng)
        drawn = rounded({name: value for name, value in values.items() if math.isfinite(value)})
        level |= {"agent": agent, "agents": drawn}
        level["known"]["agents"] = chooser.recorded()
        return agent

    def _add(
        self, parent: int | None, depth: int, agent: str | None, state: NodeState
    ) -> SearchNode:
        node = SearchNode(len(self.nodes), parent, depth, agent, self._make_arms, state)
        self.nodes.append(node)
        return node
