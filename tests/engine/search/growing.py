"""Growth of small real trees with scripted or random scores."""

from __future__ import annotations

import numpy as np

from engine.config.search import SearchConfig
from engine.config.thompson import Posterior, SelectionOrder
from engine.search.scheduler import TreeBudget
from engine.search.strategies import planted
from engine.search.tree import SearchTree

FAMILIES = list(Posterior)
ORDERS = list(SelectionOrder)


def make_tree(
    agents=("oak", "elm"),
    family=Posterior.BETA,
    order=SelectionOrder.AGENT_FIRST,
    seed=0,
    rho=None,
) -> SearchTree:
    return thompson(agents, family, order, np.random.default_rng(seed), rho=rho)


def thompson(agents, family, order, rng, **settings) -> SearchTree:
    """A tree that grows by Thompson sampling."""
    search = SearchConfig(posterior=family, selection_order=order, **settings)
    return planted(agents, search, rng)


def grow(tree: SearchTree, nodes: int, scores: np.random.Generator, p=0.4, failing=0.0) -> None:
    """Grows one node at a time; each is scored 0 or 1, or fails technically."""
    budget = TreeBudget(len(tree.nodes) - 1 + nodes)
    while claimed := budget.claim(tree):
        tree.close(claimed[0].node, some_score(scores, p, failing))


def some_score(scores: np.random.Generator, p: float, failing: float = 0.0) -> float | None:
    return None if scores.random() < failing else float(scores.random() < p)


def shape(tree: SearchTree) -> list[tuple]:
    return [(node.parent, node.agent, node.depth, node.score) for node in tree.nodes]
