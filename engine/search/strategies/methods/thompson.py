"""Thompson sampling over agents and nodes (docs/algorithm.md, section 2).

Invariants:
- `choose` changes only the generator's state and costs O(depth), times at most the groups
  of children with equal posteriors where a node has many (`engine.search.children`);
  `observe` costs O(depth). Neither visits the rest of the tree.
- With one expansion in flight at a time this is the sequential algorithm, draw for draw.
- A node's arms observe only closed, scored children. GEN competes with CONT, and the children with
  each other where CONT wins: once per agent (agent_first), or once per node (node_first).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from engine.config.thompson import AgentChoice, NodeChoice, Posterior, SelectionOrder
from engine.search.agents import AgentChooser, make_chooser
from engine.search.children import Children
from engine.search.depth import depth_weight
from engine.search.expansion import Expansion
from engine.search.node import NodeState, SearchNode
from engine.search.posteriors import DIGITS, Family, make_posterior, rounded
from engine.search.strategy import Growing

SHARED = "shared"


class Pool:
    """GEN (widen here) against CONT (go deeper), and the children that CONT may enter."""

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
        choice: AgentChoice,
        node_choice: NodeChoice,
    ):
        self.agents: AgentChooser = make_chooser(choice, agents, family)
        uniform = node_choice is NodeChoice.UNIFORM
        self.pools = {name: Pool(NodeChoice.UNIFORM if uniform else family) for name in pools}


class Thompson:
    """The strategy of one tree.

    `agent_first`: at every visited node the agent is drawn from that node's action posteriors, then
    GEN against CONT of that agent, then one of that agent's children (the "stack" strategy of
    AB-MCTS-A). Because each level draws the agent anew, one agent can repair another's program; a
    single draw for the whole descent could not do that.
    `node_first`: GEN against CONT, one of each per node, then one of all children of the node; the
    agent is drawn last, from its scores in the whole tree (as TreeQuest does). In both orders GEN
    competes with CONT alone, never with a child. With one agent both are the same algorithm.

    `search.agent_choice` selects the agent by a draw, by UCB1 on the same scores, or uniformly;
    `search.node_choice` uniform draws GEN, CONT and children uniformly. `search.rho` enables the
    depth-guided exploration of MARS²-T+ (`engine.search.depth`). Nodes at `search.max_depth` are
    never expanded; 1 makes a flat group, all nodes children of the root.
    """

    def __init__(self, growing: Growing):
        search = growing.search
        self._nodes = growing.nodes
        self._agents = growing.agents
        self._rng = growing.rng
        self._rho = search.rho
        self._max_depth = search.max_depth
        self.tree_chooser: AgentChooser = make_chooser(
            search.agent_choice, self._agents, search.posterior
        )
        self._per_agent = search.selection_order is SelectionOrder.AGENT_FIRST
        # A node's own chooser of agents is used in agent_first only.
        by_node = search.agent_choice if self._per_agent else AgentChoice.THOMPSON
        pools = self._agents if self._per_agent else (SHARED,)
        self._kind = self._agents, pools, search.posterior, by_node, search.node_choice
        self._arms: dict[int, Arms] = {}

    def arms(self, node: SearchNode) -> Arms:
        """Returns a node's arms, made at first access: most nodes of a large tree are never
        expanded."""
        arms = self._arms.get(node.id)
        if arms is None:
            arms = self._arms[node.id] = Arms(*self._kind)
        return arms

    def choose(self) -> Expansion:
        """Returns the next expansion: its parent and its agent."""
        levels: list[dict[str, Any]] = []
        node = self._nodes[0]
        while True:
            level: dict[str, Any] = {"node": node.id, "known": {}}
            levels.append(level)
            agent = self._choose_agent(self.arms(node).agents, level) if self._per_agent else None
            pool = self.arms(node).pools[agent or SHARED]
            if self._widens(node, pool, level):
                break
            child, draws = pool.children.choose(self._rng)
            level["choice"] = child
            level["children"], level["known"]["children"] = pool.children.recorded(draws)
            node = self._nodes[child]
        level["choice"] = "gen"
        agent = agent or self._choose_agent(self.tree_chooser, level)
        return Expansion(node.id, agent, node.depth + 1, {"levels": levels})

    def begin(self, node: SearchNode) -> None:
        """Counts a node that was opened among those in flight."""
        for chooser, agent in self._choosers(node):
            chooser.begin(agent)

    def observe(self, node: SearchNode, score: float | None) -> None:
        """Applies the update rule to the score of a closed node."""
        for chooser, agent in self._choosers(node):
            chooser.end(agent)
        if score is not None:
            self._credit(node, score)

    def _choosers(self, node: SearchNode) -> Iterator[tuple[AgentChooser, str]]:
        """Yields every chooser that observes a node's score, with the agent credited there."""
        assert node.agent is not None
        yield self.tree_chooser, node.agent
        while node.parent is not None:
            assert node.agent is not None
            parent = self._nodes[node.parent]
            yield self.arms(parent).agents, node.agent
            node = parent

    def _credit(self, node: SearchNode, score: float) -> None:
        """Applies the update rule: GEN at the parent, then CONT on every edge up to the root."""
        assert node.parent is not None and node.agent is not None
        self.tree_chooser.observe(node.agent, score)
        parent = self._nodes[node.parent]
        self._pool(parent, node.agent).gen.observe(score)
        self._observe_child(parent, node, score)
        below = parent
        while below.parent is not None:
            above = self._nodes[below.parent]
            assert below.agent is not None
            self._pool(above, below.agent).cont.observe(score)
            self._observe_child(above, below, score)
            below = above

    def _observe_child(self, parent: SearchNode, child: SearchNode, score: float) -> None:
        assert child.agent is not None
        if child.state is not NodeState.FINAL:  # else it can never be entered
            self._pool(parent, child.agent).children.observe(child.id, score)
        self.arms(parent).agents.observe(child.agent, score)

    def _pool(self, node: SearchNode, agent: str) -> Pool:
        return self.arms(node).pools[agent if self._per_agent else SHARED]

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
        if len(self._agents) == 1:
            return self._agents[0]
        agent, values = chooser.choose(self._rng)
        drawn = rounded({name: value for name, value in values.items() if math.isfinite(value)})
        level |= {"agent": agent, "agents": drawn}
        level["known"]["agents"] = chooser.recorded()
        return agent


strategy = Thompson
"""What the registry of strategies looks for."""
