"""Tests of the budgets that are counted in a run's events."""

import pytest

from benchmarks.claims.budgets import mismatches, training_budget
from benchmarks.claims.updates import update_figures
from engine.events.vocabulary import Event
from tests.benchmarks.claims.builders import BUDGET, SAMPLES, TEAM


def node(seq, tree, number, agent, depth, tokens, score=1.0):
    draws = {"agent": agent, "parent": 0, "depth": depth, "draws": {}}
    yield Event(seq, 0.0, "node.open", tree, number, draws)
    yield Event(seq + 1, 0.0, "node.close", tree, number, {"score": score, "tokens": tokens})


def update(seq, agent, trees, nodes, shared=()):
    payload = {"agent": agent, "step": 1, "nodes": nodes, "trees": trees, "shared_with": [*shared]}
    return Event(seq, 0.0, "agent.update", None, None, payload)


def log_of_a_step():
    yield Event(1, 0.0, "tree.open", 1, None, {"step": 1})
    yield Event(2, 0.0, "tree.open", 2, None, {"step": 1})
    yield from node(3, 1, 1, "oak", 1, 10)
    yield from node(5, 1, 2, "fern", 2, 20)
    yield from node(7, 1, 3, "oak", 2, 40, score=None)  # failed technically: not learned from
    yield from node(9, 2, 1, "oak", 1, 80)  # of a filtered tree
    end = {"step": 1, "training_seconds": 4.5, "filtered_trees": 1}
    yield Event(13, 0.0, "step.end", None, None, end)


def test_learned_tokens_are_those_of_the_nodes_in_updates():
    events = [*log_of_a_step(), update(11, "oak", [1], 1), update(12, "fern", [1], 1)]
    budget = training_budget(events)
    assert (budget.nodes, budget.refined, budget.failed, budget.filtered_trees) == (4, 2, 1, 1)
    assert (budget.learned_nodes, budget.learned_tokens) == (2, 30)
    assert (budget.steps, budget.seconds) == (1, 4.5)


def test_agents_that_share_weights_learn_from_each_other_s_nodes():
    events = [*log_of_a_step(), update(11, "oak", [1], 2, shared=["fern"])]
    assert training_budget(events).learned_tokens == 30


def test_nodes_that_a_resume_repeats_count_once():
    again = [replace_seq(event, event.seq + 20) for event in log_of_a_step()]
    resumed = Event(20, 0.0, "run.resumed", None, None, {"step": 0})
    assert training_budget([*log_of_a_step(), resumed, *again]).nodes == 4


def replace_seq(event, seq):
    tree = None if event.tree is None else event.tree + 20
    return Event(seq, event.time, event.kind, tree, event.node, event.payload)


@pytest.mark.parametrize(
    ("arm", "budget", "expected"),
    [
        ("single-oak", {}, []),
        ("single-oak", {"learned_tokens": 27500, "parameters": 508416}, []),  # 8 %; not compared
        ("two-roles", {"learned_tokens": 15000}, ["learned tokens: 15,000 and 30,000, 0.50 times"]),
        ("single-oak", {"nodes": 5119}, ["nodes: 5,119 and 5,120, 1.00 times"]),
        ("single-deep", {"parameters": 1_074_176}, []),
        ("single-deep", {"parameters": 508416}, ["parameters: 508,416 and 985,760, 0.52 times"]),
        ("single-oak", {"tree_answers": 400}, ["tree answers: 400 and 800, 0.50 times"]),
    ],
)  # fmt: skip
def test_a_budget_that_differs_is_reported(arm, budget, expected):
    assert mismatches(TEAM, TEAM.arm(arm), BUDGET | budget, BUDGET) == expected


def test_answers_are_compared_under_the_names_that_the_arms_read():
    fewer = BUDGET | {"samples_answers": 700}
    said = mismatches(SAMPLES, SAMPLES.arm("tree-8"), BUDGET, fewer)
    assert said == ["tree answers: 800 and 700, 1.14 times"]


def test_tokens_beyond_ppos_clip_are_counted_on_the_side_that_the_advantage_limits():
    def credit(seq, node, advantage):
        return Event(seq, 0.0, "node.credit", 1, node, {"shaped": 1.0, "advantage": advantage})

    ratios = [1.5, 1.29, 1.27, 1.0, 0.81, 0.79]
    learned = [{"node": node, "entropy": [], "ratio": ratios} for node in (1, 2, 3)]
    updated = {"agent": "oak", "nodes": 3, "clip_fraction": 0.5}
    events = [
        *(credit(n, n, advantage) for n, advantage in ((1, 2.0), (2, -0.5), (3, 0.0))),
        Event(4, 0.0, "agent.update", None, None, updated),
        Event(5, 0.0, "tree.learned", 1, None, {"agent": "oak", "nodes": learned}),
        Event(6, 0.0, "step.end", None, None, {"step": 1, "training_seconds": 3.0}),
    ]
    assert update_figures(events) == {
        "training/clip_fraction": 0.5,
        "training/ppo_clip_fraction": (2 + 1 + 0) / 18,
        "training/seconds_per_step": 3.0,
    }
    assert update_figures([]) == {}
