import numpy as np
import pytest

from engine.search.node import NodeState
from engine.search.scheduler import Spending, TreeBudget, TreeEnd
from tests.engine.search.growing import FAMILIES, ORDERS, make_tree, shape, some_score


def run(tree, budget, seed, failing=0.0):
    """Closes open nodes in random order and opens the next after each, as a training loop does."""
    scores, history = np.random.default_rng(seed), []
    claimed = budget.claim(tree)
    while not budget.is_spent(tree):
        history.append(tree.in_flight)
        opened = [node.id for node in tree.nodes if node.state is NodeState.OPEN]
        tree.close(int(scores.choice(opened)), some_score(scores, 0.4, failing))
        claimed += budget.claim(tree)
    return claimed, history


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_flight_and_budget_are_never_exceeded_and_always_filled(order, k):
    for seed in range(10):
        tree, budget = make_tree(order=order, seed=seed), TreeBudget(8, k)
        claimed, history = run(tree, budget, seed, failing=0.2)
        left = [8 - done for done in range(8)]
        assert history == [min(k, unfinished) for unfinished in left]
        assert [expansion.node for expansion in claimed] == list(range(1, 9))
        assert budget.claim(tree) == [] and tree.in_flight == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", ORDERS)
def test_one_in_flight_is_the_sequential_algorithm_draw_for_draw(family, order):
    for seed in range(10):
        scheduled = make_tree(family=family, order=order, seed=seed)
        claimed, _ = run(scheduled, TreeBudget(30, 1), seed)
        sequential = make_tree(family=family, order=order, seed=seed)
        chosen = []
        for node in scheduled.nodes[1:]:
            chosen.append(sequential.select())
            sequential.close(sequential.open(chosen[-1]), node.score)
        assert shape(sequential) == shape(scheduled)
        assert [c.draws for c in chosen] == [c.draws for c in claimed]


def test_the_same_seed_gives_the_same_tree():
    trees = [make_tree(seed=3) for _ in range(2)]
    for tree in trees:
        run(tree, TreeBudget(40, 4), seed=3, failing=0.1)
    assert shape(trees[0]) == shape(trees[1])


def test_a_claim_fills_a_free_slot_without_a_barrier():
    tree, budget = make_tree(), TreeBudget(8, 3)
    first = budget.claim(tree)
    assert len(first) == 3 and budget.claim(tree) == []
    tree.close(first[1].node, 1.0)
    assert len(budget.claim(tree)) == 1 and tree.in_flight == 3


def test_an_empty_budget_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        TreeBudget(0, 1)
    with pytest.raises(ValueError, match="at least 1"):
        TreeBudget(8, 0)


def test_a_budget_of_tokens_ends_the_tree_and_open_nodes_are_finished():
    tree, spending, budget = make_tree(), Spending(), TreeBudget(50, 2, tokens=100)
    claimed = budget.claim(tree, spending)
    while not budget.is_spent(tree, spending):
        tree.close(claimed.pop(0).node, 0.0)
        spending.tokens += 30
        claimed += budget.claim(tree, spending)
    # The fourth answer passes 100 tokens while a fifth is in flight, which is finished.
    assert (len(tree.nodes) - 1, spending.tokens) == (5, 150)
    assert budget.end(tree, spending) is TreeEnd.TOKENS


def test_a_budget_of_seconds_ends_the_tree_after_its_first_nodes():
    tree, spending, budget = make_tree(), Spending(), TreeBudget(50, 1, seconds=1e-9)
    (first,) = budget.claim(tree, spending)
    tree.close(first.node, 0.0)
    assert budget.claim(tree, spending) == []
    assert budget.end(tree, spending) is TreeEnd.SECONDS
    patient = TreeBudget(50, 1, seconds=1e9)
    assert patient.end(tree, spending) is None and patient.room(tree, spending) == 1


def test_a_solved_tree_ends_only_when_stop_is_enabled():
    tree, solved = make_tree(), Spending(solved=True)
    assert TreeBudget(8).end(tree, solved) is None
    assert TreeBudget(8, stop_when_solved=True).end(tree, solved) is TreeEnd.SOLVED
    assert TreeBudget(8, stop_when_solved=True).claim(tree, solved) == []


def test_a_spent_tree_says_that_its_nodes_are_the_reason():
    tree, budget = make_tree(), TreeBudget(2, 2)
    assert budget.end(tree) is None
    budget.claim(tree)
    assert budget.end(tree) is TreeEnd.NODES and not budget.is_spent(tree)
