"""Tests of strategies: the tree obeys any, and each is a function of seed, scores and memory."""

import json

import numpy as np
import pytest

from engine.config.search import SearchConfig
from engine.config.thompson import SelectionOrder
from engine.memory.protocol import SeenTree
from engine.search.expansion import Expansion
from engine.search.node import NodeState
from engine.search.strategies import STRATEGIES, planted
from engine.search.tree import SearchTree
from tests.engine.search.growing import grow, shape

AGENTS = ("oak", "elm")


def tree_of(name, seed=0, memory=None, **settings):
    search = SearchConfig(strategy=name, **settings)
    return planted(AGENTS, search, np.random.default_rng(seed), memory)


def seen(agent, *scores):
    count = len(scores)
    return SeenTree(0, range(1, count + 1), [0] * count, [agent] * count, scores, filtered=False)


@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("order", list(SelectionOrder))
def test_the_contract_of_every_strategy(name, order):
    def grown(seed):
        tree = tree_of(name, seed, selection_order=order, max_depth=4)
        grow(tree, 60, np.random.default_rng(seed), failing=0.2)
        return tree

    tree = grown(1)
    assert shape(tree) == shape(grown(1)) != shape(grown(2))
    assert {node.agent for node in tree.nodes[1:]} == set(AGENTS)
    assert max(node.depth for node in tree.nodes) <= 4
    assert all(tree.nodes[n.parent].state is NodeState.SCORED for n in tree.nodes[1:])
    json.dumps(tree.select().draws, allow_nan=False)


def test_a_tree_refuses_what_its_strategy_must_not_choose_and_tells_it_the_rest():
    told = []

    class Deepest:
        """Always repairs the newest scored node."""

        def __init__(self, nodes):
            self.nodes = nodes

        def choose(self):
            newest = [n for n in self.nodes if n.state is NodeState.SCORED][-1]
            return Expansion(newest.id, "oak", newest.depth + 1, {})

        def begin(self, node):
            told.append(("begin", node.id))

        def observe(self, node, score):
            told.append((node.id, score))

    tree = SearchTree(AGENTS, lambda nodes, agents: Deepest(nodes))
    for score in (0.5, None, 1.0):
        tree.close(tree.open(tree.select()), score)
    assert [node.parent for node in tree.nodes] == [None, 0, 1, 1]
    assert told == [("begin", 1), (1, 0.5), ("begin", 2), (2, None), ("begin", 3), (3, 1.0)]
    with pytest.raises(ValueError, match="only scored nodes expand"):
        tree.open(Expansion(2, "oak", 3, {}))


@pytest.mark.parametrize("order", list(SelectionOrder))
def test_discounted_begins_with_what_earlier_trees_say_of_the_agents(order):
    search = SearchConfig(strategy="discounted", discounted={"gamma": 0.5})
    memory = STRATEGIES["discounted"].memory(search)
    memory.observe(1, [seen("oak", *[1.0] * 30), seen("elm", *[0.0] * 30, None)])
    assert memory.of("oak") == (30.0, 0.0) and memory.of("elm") == (0.0, 30.0)

    def share(memory):
        trees = [tree_of("discounted", seed, memory, selection_order=order) for seed in range(60)]
        return np.mean([tree.select().agent == "oak" for tree in trees])

    assert share(memory) > 0.95 and 0.3 < share(None) < 0.7
    memory.observe(2, [seen("elm", 1.0)])
    assert memory.of("oak") == (15.0, 0.0) and memory.of("elm") == (1.0, 15.0)
    other = STRATEGIES["discounted"].memory(search)
    other.restore(json.loads(json.dumps(memory.state())))
    assert other.state() == memory.state() and other.of("elm") == (1.0, 15.0)


def test_without_earlier_trees_discounted_is_thompson_draw_for_draw():
    def grown(name):
        tree = tree_of(name, 4)
        grow(tree, 40, np.random.default_rng(4))
        return shape(tree)

    assert grown("discounted") == grown("thompson")
