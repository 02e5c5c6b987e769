"""Tests of allocators: every tree has a node, and all together no more than the budget."""

import itertools

import pytest

from engine.config.search import SearchConfig
from engine.search.allocators import ALLOCATORS, allocated, within_budget
from engine.search.allocators.methods.knapsack import budgets
from engine.search.scheduler import TreeBudget
from tests.engine.memory.test_memories import tree
from tests.engine.search.growing import make_tree


@pytest.mark.parametrize("name", list(ALLOCATORS))
@pytest.mark.parametrize("observed", [0, 6])
def test_the_contract_of_every_allocator(name, observed):
    search = SearchConfig(allocator=name, nodes_per_tree=6)
    make = ALLOCATORS[name].memory
    memory = make(search) if make else None
    for step in range(observed if memory else 0):
        memory.observe(step, [tree(0, 1.0, 0.0, 0.0), tree(1, 1.0), tree(2, 0.0)])
    nodes = allocated([0, 1, 2, 3, 0], search, memory)
    assert len(nodes) == 5 and min(nodes) >= 1 and sum(nodes) <= 30
    if name == "uniform" or not observed:
        assert nodes == [6] * 5


def test_knapsack_gives_more_to_problems_that_are_sometimes_solved():
    search = SearchConfig(allocator="knapsack", nodes_per_tree=6, knapsack={"warmup_steps": 1})
    memory = ALLOCATORS["knapsack"].memory(search)
    assert allocated([0, 1, 2], search, memory) == [6, 6, 6]
    memory.observe(1, [tree(0, 1.0, 0.0, 0.0), tree(1, 1.0), tree(2, 0.0)])
    often, always, never = allocated([0, 1, 2], search, memory)
    assert always == 2 and often > 6 and never >= 2 and often + always + never == 18


@pytest.mark.parametrize(
    ("rates", "budget"), [([0.5, 0.1, 0.9], 14), ([0.3, 0.3], 9), ([0.01, 0.6, 0.2], 10)]
)
def test_knapsack_is_the_optimum_that_exhaustion_finds(rates, budget):
    def value(counts):
        pairs = zip(counts, rates, strict=True)
        return sum((1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2 for n, p in pairs)

    counts = [c for c in itertools.product(range(2, 9), repeat=len(rates)) if sum(c) <= budget]
    best = max(counts, key=value)
    assert value(budgets(rates, budget, 2, 8)) == pytest.approx(value(best), abs=1e-12)


def test_settings_that_cannot_be_are_refused_with_their_remedy():
    with pytest.raises(ValueError, match="low = 9 is more than high = 4; lower it"):
        SearchConfig(knapsack={"low": 9, "high": 4})
    with pytest.raises(ValueError, match="with low = 4 need 8; raise the budget"):
        budgets([0.5, 0.5], 7, 4, 8)


@pytest.mark.parametrize("nodes", [[1], [0, 6], [3, 4]])
def test_an_allocator_that_does_not_fit_the_budget_is_an_error(nodes):
    with pytest.raises(ValueError, match="correct the allocator"):
        within_budget("mine", nodes, trees=2, nodes_per_tree=3)


def test_a_tree_has_the_budget_that_it_was_given():
    budget = TreeBudget(8, 2).of_nodes(3)
    tree_of_three = make_tree()
    while claimed := budget.claim(tree_of_three):
        for expansion in claimed:
            tree_of_three.close(expansion.node, 0.0)
    assert len(tree_of_three.nodes) == 4
