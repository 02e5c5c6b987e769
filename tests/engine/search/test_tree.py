import gc
import json
import weakref
from itertools import pairwise

import numpy as np
import pytest

from engine.config.thompson import AgentChoice, Posterior, SelectionOrder
from engine.search.children import MAX_RECORDED_DRAWS
from engine.search.expansion import Expansion
from engine.search.node import NodeState
from engine.search.posteriors import make_posterior
from tests.engine.search.growing import FAMILIES, ORDERS, grow, make_tree, shape, thompson


class CountingGenerator:
    """A real generator that counts the draws taken from it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.draws = 0

    def beta(self, a, b):
        self.draws += np.size(a)
        return self.rng.beta(a, b)

    def standard_t(self, nu):
        self.draws += np.size(nu)
        return self.rng.standard_t(nu)

    def random(self, size=None):
        self.draws += size or 1
        return self.rng.random(size)


def posteriors_of(tree, node):
    arms = tree.strategy.arms(node)
    found = {f"action {a}": p.parameters() for a, p in arms.agents.posteriors.items()}
    for name, pool in arms.pools.items():
        found[f"gen {name}"] = pool.gen.parameters()
        found[f"cont {name}"] = pool.cont.parameters()
        found |= {f"child {c}": p.parameters() for c, p in pool.children.items()}
    return found


def recomputed(tree, node, family, per_agent):
    """Every posterior of a node from the finished tree alone, by subtrees."""

    def subtree(root):
        return [
            s for child in root.children for s in [tree.nodes[child], *subtree(tree.nodes[child])]
        ]

    def after(nodes):
        posterior = make_posterior(family)
        for scored in nodes:
            posterior.observe(scored.score)
        return posterior.parameters()

    live = [tree.nodes[c] for c in node.children if tree.nodes[c].score is not None]
    below = {child.id: [n for n in subtree(child) if n.score is not None] for child in live}
    found = {}
    for agent in tree.agents:
        mine = [child for child in live if child.agent == agent]
        found[f"action {agent}"] = after([n for c in mine for n in [c, *below[c.id]]])
    for pool in tree.agents if per_agent else ("shared",):
        mine = [child for child in live if not per_agent or child.agent == pool]
        found[f"gen {pool}"] = after(mine)
        found[f"cont {pool}"] = after([n for c in mine for n in below[c.id]])
        found |= {f"child {c.id}": after([c, *below[c.id]]) for c in mine}
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_a_node_decides_between_gen_and_cont_before_it_compares_children(order):
    """As TreeQuest does, in both orders: no draw of a child competes with GEN."""
    widened_past_a_larger_child = 0
    for seed in range(20):
        tree = make_tree(("oak", "elm"), Posterior.BETA, order, seed)
        grow(tree, 40, np.random.default_rng(seed))
        for _ in range(20):
            for level in tree.select().draws["levels"]:
                if "gen" not in level:
                    continue
                enters = level["choice"] != "gen"
                assert enters == (level["cont"] > level["gen"]) or level["cont"] == level["gen"]
                assert ("children" in level) == enters
                if enters:
                    widened_past_a_larger_child += max(level["children"].values()) < level["gen"]
    assert widened_past_a_larger_child > 0, "CONT won although GEN exceeded every child"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", ORDERS)
def test_posteriors_are_those_of_the_update_rule(family, order):
    for seed in range(5):
        tree = make_tree(("oak", "elm", "fir"), family, order, seed)
        grow(tree, 40, np.random.default_rng(seed), failing=0.1)
        for node in tree.nodes:
            expected = recomputed(tree, node, family, order is SelectionOrder.AGENT_FIRST)
            result = posteriors_of(tree, node)
            assert result.keys() == expected.keys()
            for name in expected:
                assert result[name] == pytest.approx(expected[name], abs=1e-9), name


def test_a_tree_numbers_its_nodes_in_order_and_stores_their_depth():
    tree = make_tree(seed=4)
    grow(tree, 30, np.random.default_rng(4))
    assert [node.id for node in tree.nodes] == list(range(31))
    for node in tree.nodes[1:]:
        parent = tree.nodes[node.parent]
        assert node.depth == parent.depth + 1 and node.id in parent.children


@pytest.mark.parametrize("family", FAMILIES)
def test_with_one_agent_both_orders_are_the_same_algorithm(family):
    trees = [make_tree(("oak",), family, order, seed=5) for order in ORDERS]
    for tree in trees:
        grow(tree, 60, np.random.default_rng(5))
    assert shape(trees[0]) == shape(trees[1])


@pytest.mark.parametrize("order", ORDERS)
def test_agents_repair_each_other(order):
    pairs = set()
    for seed in range(5):
        tree = make_tree(order=order, seed=seed)
        grow(tree, 40, np.random.default_rng(seed))
        pairs |= {(tree.nodes[n.parent].agent, n.agent) for n in tree.nodes if n.depth > 1}
    assert {("oak", "elm"), ("elm", "oak")} <= pairs


@pytest.mark.parametrize("order", ORDERS)
def test_the_better_agent_is_chosen_more_often(order):
    shares = []
    for seed in range(40):
        tree, rng = make_tree(order=order, seed=seed), np.random.default_rng(seed)
        for _ in range(20):
            expansion = tree.select()
            skill = 0.8 if expansion.agent == "oak" else 0.1
            tree.close(tree.open(expansion), float(rng.random() < skill))
        shares.append(np.mean([node.agent == "oak" for node in tree.nodes[1:]]))
    assert np.mean(shares) > 0.6


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_failed_nodes_take_no_part(order, family):
    for seed in range(10):
        tree = make_tree(family=family, order=order, seed=seed)
        grow(tree, 40, np.random.default_rng(seed), failing=0.4)
        failed = {node.id for node in tree.nodes if node.state is NodeState.FAILED}
        assert failed
        for node in tree.nodes:
            assert node.parent not in failed
            assert all(
                failed.isdisjoint(pool.children) for pool in tree.strategy.arms(node).pools.values()
            )


def test_a_failed_node_leaves_every_posterior_as_it_was():
    tree = make_tree(seed=7)
    grow(tree, 10, np.random.default_rng(7))
    before = [posteriors_of(tree, node) for node in tree.nodes]
    chooser = {a: p.parameters() for a, p in tree.strategy.tree_chooser.posteriors.items()}
    tree.close(tree.open(tree.select()), None)
    assert [posteriors_of(tree, node) for node in tree.nodes[:-1]] == before
    assert {a: p.parameters() for a, p in tree.strategy.tree_chooser.posteriors.items()} == chooser
    assert tree.in_flight == 0


def test_an_open_node_is_not_descended_into():
    tree = make_tree(("oak",), seed=8)
    opened = tree.open(tree.select())
    for _ in range(20):
        assert tree.select().parent == 0
    tree.close(opened, 1.0)
    assert {tree.select().parent for _ in range(40)} == {0, opened}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_selection_draws_only_along_its_path(order, family):
    """Draws per selection depend on the path's width, not on the rest of the tree."""
    for nodes in (50, 1_000):
        counting = CountingGenerator(9)
        tree = thompson(("oak", "elm"), family, order, counting)
        grow(tree, nodes, np.random.default_rng(9), p=0.3)
        for _ in range(30):
            before = counting.draws
            levels = tree.select().draws["levels"]
            path = [tree.nodes[level["node"]] for level in levels]
            widest = sum(len(node.children) for node in path)
            assert counting.draws - before <= len(path) * (2 + 2) + widest


def test_selection_in_a_bushy_tree_ignores_the_other_branches():
    """The same path costs the same draws after a thousand nodes were added next to it."""

    def cost(extra):
        counting = CountingGenerator(10)
        tree = thompson(("oak",), Posterior.BETA, SelectionOrder.NODE_FIRST, counting)
        for parent, score in [(0, 1.0), (0, 0.0)] + [(2, 0.0), (2, 1.0)] * extra:
            depth = tree.nodes[parent].depth + 1
            tree.close(tree.open(Expansion(parent, "oak", depth, {})), score)
        paths = {}
        for _ in range(200):
            before = counting.draws
            expansion = tree.select()
            if expansion.parent in (0, 1):
                paths[expansion.parent] = counting.draws - before
        return paths

    assert cost(0) == cost(500) == {0: 2, 1: 4}


@pytest.mark.parametrize("order", ORDERS)
def test_the_record_of_draws_explains_the_choice(order):
    tree = make_tree(order=order, seed=11)
    grow(tree, 60, np.random.default_rng(11))
    for _ in range(200):
        expansion = tree.select()
        levels = json.loads(json.dumps(expansion.draws))["levels"]
        assert levels[0]["node"] == 0 and levels[-1]["node"] == expansion.parent
        assert expansion.depth == len(levels)
        for here, below in pairwise(levels):
            assert here["choice"] == below["node"] and here["cont"] >= here["gen"]
            children = here["children"]
            assert children[str(below["node"])] == max(children.values())
        last = levels[-1]
        assert last["choice"] == "gen" and last.get("gen", 0) >= last.get("cont", -9)
        assert last["agent"] == expansion.agent
        assert last["agents"][expansion.agent] == max(last["agents"].values())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", ORDERS)
def test_the_record_holds_the_posterior_behind_every_draw(order, family):
    tree = make_tree(family=family, order=order, seed=13)
    grow(tree, 40, np.random.default_rng(13))
    for _ in range(50):
        for level in tree.select().draws["levels"]:
            known, arms = level["known"], tree.strategy.arms(tree.nodes[level["node"]])
            for group in ("agents", "children"):
                assert set(known.get(group, {})) == set(level.get(group, {}))
            assert ("gen" in known, "cont" in known) == ("gen" in level, "cont" in level)
            if "children" in level:
                pool = arms.pools[level["agent"] if order is ORDERS[0] else "shared"]
                child = str(level["choice"]) if level["choice"] != "gen" else None
                assert child is None or known["children"][child] == pytest.approx(
                    pool.children[int(child)].parameters(), abs=1e-4
                )
                assert known["gen"] == pytest.approx(pool.gen.parameters(), abs=1e-4)


def test_the_record_holds_ucb_statistics_and_the_depth_weight():
    rng = np.random.default_rng(14)
    tree = thompson(
        ("oak", "elm"), Posterior.BETA, SelectionOrder.AGENT_FIRST, rng, rho=0.95,
        agent_choice=AgentChoice.UCB,
    )  # fmt: skip
    grow(tree, 30, rng)
    level = tree.select().draws["levels"][0]
    assert sum(known["nodes"] for known in level["known"]["agents"].values()) == 30
    assert 0 < level["weight"] < 1


def test_the_record_of_a_wide_node_stays_small():
    tree = make_tree(("oak",), seed=12)
    for _ in range(500):
        tree.close(tree.open(Expansion(0, "oak", 1, {})), 0.0)
    wide = [e.draws["levels"][0] for e in (tree.select() for _ in range(100))]
    recorded = [level for level in wide if "children" in level]
    # Five hundred equal children draw as one; the record has the one that was entered.
    assert recorded and all(list(r["children"]) == [str(r["choice"])] for r in recorded)
    assert len({level["choice"] for level in recorded}) > 20

    for _ in range(60):
        tree.close(tree.open(Expansion(1, "oak", 2, {})), 1.0)
    narrow = [e.draws["levels"][1:2] for e in (tree.select() for _ in range(200))]
    recorded = [
        len(level["children"]) for levels in narrow for level in levels if "children" in level
    ]
    assert recorded and max(recorded) == MAX_RECORDED_DRAWS


def test_depth_guidance_makes_trees_narrower():
    """Of Beta draws; a recipe with Gaussian ones is refused (`test_config`)."""

    def mean_width(rho):
        widths = []
        for seed in range(40):
            tree = make_tree(("oak",), Posterior.BETA, SelectionOrder.NODE_FIRST, seed, rho)
            grow(tree, 40, np.random.default_rng(seed), p=0.5)
            widths.append(len(tree.nodes[0].children))
        return np.mean(widths)

    assert mean_width(0.95) < mean_width(None)


def test_impossible_steps_are_refused_with_their_reason():
    tree = make_tree(seed=13)
    first = tree.open(tree.select())
    for expansion, reason in [
        (Expansion(first, "oak", 2, {}), "open"),
        (Expansion(99, "oak", 2, {}), "no such node"),
        (Expansion(0, "ash", 1, {}), "choose one of oak, elm"),
    ]:
        with pytest.raises(ValueError, match=reason):
            tree.open(expansion)
    for score in (1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            tree.close(first, score)
    tree.close(first, 0.5)
    with pytest.raises(ValueError, match="only an open node"):
        tree.close(first, 0.5)
    with pytest.raises(ValueError, match="only an open node"):
        tree.close(0, 0.5)
    with pytest.raises(ValueError, match="only once"):
        make_tree(("oak", "oak"))


@pytest.mark.parametrize("order", ORDERS)
def test_ucb_spreads_what_is_under_way_and_prefers_the_better_agent(order):
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        agents = ("oak", "elm", "fir")
        tree = thompson(agents, Posterior.BETA, order, rng, agent_choice=AgentChoice.UCB)
        first = [tree.open(tree.select()) for _ in range(3)]
        assert [tree.nodes[node].agent for node in first] == ["oak", "elm", "fir"]
        for node in first:
            tree.close(node, float(tree.nodes[node].agent == "elm"))
        for _ in range(30):
            expansion = tree.select()
            json.dumps(expansion.draws, allow_nan=False)
            tree.close(tree.open(expansion), float(expansion.agent == "elm"))
        shares.append(np.mean([node.agent == "elm" for node in tree.nodes[1:]]))
    assert np.mean(shares) > 0.45


def test_a_failed_node_counts_for_ucb_only_while_it_is_under_way():
    rng = np.random.default_rng(0)
    tree = thompson(
        ("oak", "elm"), Posterior.BETA, SelectionOrder.NODE_FIRST, rng, agent_choice=AgentChoice.UCB
    )
    node = tree.open(tree.select())
    assert tree.select().agent == "elm"
    tree.close(node, None)
    assert tree.select().agent == "oak"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("max_depth", [1, 2])
def test_no_node_is_deeper_than_the_limit(order, max_depth):
    def grown(limit, seed):
        rng, scores = np.random.default_rng(seed), np.random.default_rng(seed)
        tree = thompson(("oak", "elm"), Posterior.BETA, order, rng, max_depth=limit)
        grow(tree, 24, scores)
        return tree

    for seed in range(5):
        tree = grown(max_depth, seed)
        assert max(node.depth for node in tree.nodes) == max_depth
        assert {node.agent for node in tree.nodes[1:]} == {"oak", "elm"}
        # A limit that is never reached changes no draw.
        assert shape(grown(100, seed)) == shape(grown(None, seed))


@pytest.mark.parametrize("order", ORDERS)
def test_a_tree_is_freed_with_its_last_reference(order):
    tree = thompson(("oak", "elm"), Posterior.BETA, order, np.random.default_rng(1))
    grow(tree, 24, np.random.default_rng(1))
    kept = weakref.ref(tree)
    gc.disable()  # objects in no cycle need no collector
    try:
        del tree
        assert kept() is None
    finally:
        gc.enable()
