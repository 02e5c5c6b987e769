"""Tests of the uniform choices of agent and node, the controls of Thompson sampling."""

from collections import Counter

import numpy as np
import pytest

from engine.config.search import SearchConfig
from engine.config.thompson import AgentChoice, NodeChoice, Posterior, SelectionOrder
from engine.search.agents import make_chooser
from engine.search.children import MAX_INDIVIDUAL, MIN_VECTORIZED, Children
from engine.search.posteriors import FlatPosterior
from engine.search.strategies import planted
from tests.engine.search.growing import thompson

AGENTS = ("oak", "elm")


def grown(order, nodes=400, score=lambda agent: float(agent == "oak"), **choices):
    tree = thompson(AGENTS, Posterior.BETA, order, np.random.default_rng(3), **choices)
    expansions = []
    for _ in range(nodes):
        expansion = tree.select()
        expansions.append(expansion)
        tree.close(tree.open(expansion), score(expansion.agent))
    return tree, expansions


def root_pool(tree):
    return next(iter(tree.strategy.arms(tree.nodes[0]).pools.values()))


def test_uniform_agents_are_drawn_equally_whatever_they_score():
    chooser = make_chooser(AgentChoice.UNIFORM, AGENTS, Posterior.BETA)
    for _ in range(50):
        chooser.observe("oak", 1.0)
        chooser.observe("elm", 0.0)
    rng = np.random.default_rng(0)
    drawn = Counter(chooser.choose(rng)[0] for _ in range(2000))
    assert abs(drawn["oak"] - 1000) < 4 * 2000**0.5 / 2  # four standard deviations
    assert chooser.recorded()["oak"] == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize("order", list(SelectionOrder))
def test_uniform_agents_leave_the_choice_of_nodes_to_thompson(order):
    tree, expansions = grown(order, agent_choice=AgentChoice.UNIFORM)
    levels = [one for e in expansions for one in e.draws["levels"] if "agent" in one]
    drawn = Counter(level["agent"] for level in levels)
    assert abs(drawn["oak"] - len(levels) / 2) < 4 * len(levels) ** 0.5 / 2
    assert any(p.a != 1.0 for p in root_pool(tree).children.values())


@pytest.mark.parametrize("order", list(SelectionOrder))
def test_uniform_nodes_leave_the_choice_of_agents_to_thompson(order):
    tree, expansions = grown(order, node_choice=NodeChoice.UNIFORM)
    assert Counter(one.agent for one in expansions)["oak"] > 300
    pool = root_pool(tree)
    assert len(pool.children) and {(p.a, p.b) for p in pool.children.values()} == {(1.0, 1.0)}


def test_uniform_choices_do_not_depend_on_scores():
    uniform = {"agent_choice": AgentChoice.UNIFORM, "node_choice": NodeChoice.UNIFORM}
    for order in SelectionOrder:
        one, other = (
            [(e.parent, e.agent) for e in grown(order, score=score, **uniform)[1]]
            for score in (lambda agent: 1.0, lambda agent: float(agent == "elm"))
        )
        assert one == other
        assert max(parent for parent, _ in one) > 100


def test_thompson_does_depend_on_scores():
    one, other = (
        [(e.parent, e.agent) for e in grown(SelectionOrder.AGENT_FIRST, score=score)[1]]
        for score in (lambda agent: 1.0, lambda agent: float(agent == "elm"))
    )
    assert one != other


@pytest.mark.parametrize("count", [2, MIN_VECTORIZED, MAX_INDIVIDUAL + 1])
def test_uniform_children_are_entered_equally_often(count):
    children = Children(NodeChoice.UNIFORM)
    for child in range(count):
        children.observe(child, float(child == 0))
    rng = np.random.default_rng(1)
    chosen = Counter(children.choose(rng)[0] for _ in range(200 * count))
    assert len(chosen) == count
    assert abs(chosen[0] - 200) < 4 * 200**0.5


def test_a_score_out_of_range_is_refused():
    with pytest.raises(ValueError, match="give a value from 0 to 1"):
        FlatPosterior().observe(1.5)


def test_the_settings_reach_the_trees():
    search = SearchConfig(agent_choice="uniform", node_choice="uniform")
    tree = planted(AGENTS, search, np.random.default_rng(1))
    tree.close(tree.open(tree.select()), 1.0)
    known = tree.select().draws["levels"][0]["known"]
    assert set(map(str, known["agents"].values())) == {str({"a": 1.0, "b": 1.0})}
