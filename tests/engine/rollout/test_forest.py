"""Tests of a forest: its growth depends on seed and answers alone; failed nodes do not count."""

import gc
from dataclasses import replace

import numpy as np
import pytest

from engine.config.credit import CreditConfig
from engine.config.evaluation import PublicScore
from engine.config.search import SearchConfig
from engine.credit.assign import Credit
from engine.environments.types import Settled
from engine.events.vocabulary import StopReason, Verdict
from engine.inference.selection import tree_answer
from engine.policy.types import Answer, Generation
from engine.problems.generator import make_problem
from engine.rollout.forest import Forest, public_judge, public_score, training_score
from engine.sandbox.host.verify import Verification
from engine.search.scheduler import TreeEnd
from engine.training.telemetry import StepFigures

PROBLEMS = [make_problem(2, i)[0] for i in range(3)]
AGENTS = ("oak", "fern")


def answer(text):
    return Answer(Generation([1], [2], [-0.1], StopReason.END_OF_TEXT, 0, 0.0), text)


def verification(verdict, fraction=0.5, public=1):
    return Verification(verdict, fraction, (None,) * 3, public, False)


def settled(outcome):
    return Settled(outcome, "seen")


def grow(seed, verdict_of, nodes=8, flight=2, depth=None):
    """Grows a forest; `verdict_of(rng)` draws the verdict of each node."""
    search = SearchConfig(nodes_per_tree=nodes, nodes_in_flight=flight, max_depth=depth)
    forest = Forest(PROBLEMS, AGENTS, search, training_score(CreditConfig()), [seed])
    rng = np.random.default_rng(seed)
    while claims := forest.claim(forest.trees):
        for claim in claims:
            if claim.expansion.parent:
                assert claim.tree.request(claim.expansion).observation == "seen"
            forest.close(claim, answer(f"program {claim.node}"), settled(verdict_of(rng)))
    return forest


def shapes(forest):
    return [[(n.parent, n.agent, n.score) for n in t.written.values()] for t in forest.trees]


def sometimes(rng):
    passed = rng.random() < 0.4
    return verification(Verdict.PASSED if passed else Verdict.WRONG_ANSWER)


def test_every_tree_spends_its_whole_budget():
    forest = grow(1, sometimes)
    assert [len(tree.written) for tree in forest.trees] == [8, 8, 8]


def test_one_seed_gives_one_forest_and_another_gives_another():
    assert shapes(grow(5, sometimes)) == shapes(grow(5, sometimes)) != shapes(grow(6, sometimes))


def test_both_agents_write_and_some_nodes_refine_others():
    nodes = [
        n for seed in range(6) for t in grow(seed, sometimes).trees for n in t.written.values()
    ]
    assert {n.agent for n in nodes} == set(AGENTS)
    assert 0 < sum(n.parent > 0 for n in nodes) < len(nodes)


def test_a_node_that_could_not_be_verified_has_no_score_and_no_children():
    def failing(rng):
        return verification(Verdict.SANDBOX_FAILURE) if rng.random() < 0.5 else sometimes(rng)

    for tree in grow(3, failing).trees:
        failed = {n.node for n in tree.written.values() if n.score is None}
        assert failed
        assert not failed & {n.parent for n in tree.written.values()}
        assert len(tree.scores()) == len(tree.written) - len(failed)


@pytest.mark.parametrize(
    ("kind", "verdict", "expected"),
    [
        ("binary", Verdict.PASSED, 1.0),
        ("binary", Verdict.WRONG_ANSWER, 0.0),
        ("fraction", Verdict.WRONG_ANSWER, 0.5),
        ("binary", Verdict.SANDBOX_FAILURE, None),
        ("fraction", Verdict.SANDBOX_FAILURE, None),
    ],
)
def test_training_scores(kind, verdict, expected):
    assert training_score(CreditConfig(score=kind))(verification(verdict)) == expected


def test_at_evaluation_only_public_tests_guide_the_search():
    assert public_score(verification(Verdict.WRONG_ANSWER, fraction=0.9, public=2)) == 2 / 3
    assert public_score(verification(Verdict.SANDBOX_FAILURE)) is None


def test_a_binary_score_of_public_tests_is_all_or_nothing():
    judge = public_judge(PublicScore.BINARY)
    for public, expected in ((0, 0.0), (2, 0.0), (3, 1.0)):
        assert judge(verification(Verdict.WRONG_ANSWER, public=public)) == expected
    assert judge(verification(Verdict.SANDBOX_FAILURE)) is None
    one = verification(Verdict.WRONG_ANSWER, public=2)
    assert public_judge(PublicScore.FRACTION)(one) == public_score(one)


def test_a_binary_search_selects_the_latest_of_programs_that_miss_a_public_test():
    chosen = {}
    for kind in PublicScore:
        search = SearchConfig(nodes_per_tree=4, max_depth=1)
        forest = Forest(PROBLEMS[:1], AGENTS, search, public_judge(kind), [1])
        passed = iter((2, 1, 0, 1))
        while claims := forest.claim(forest.trees):
            one = verification(Verdict.WRONG_ANSWER, public=next(passed))
            forest.close(claims[0], answer("x"), settled(one))
        chosen[kind] = tree_answer(forest.trees[0], {})
    assert chosen == {PublicScore.FRACTION: 1, PublicScore.BINARY: 4}


def test_a_tree_ends_early_when_enabled_and_a_node_passes_all_public_tests():
    for expected, nodes, end in ((True, 1, TreeEnd.SOLVED), (False, 8, TreeEnd.NODES)):
        search = SearchConfig(stop_when_solved=expected)
        forest = Forest(PROBLEMS[:1], AGENTS, search, public_score, [1])
        while claims := forest.claim(forest.trees):
            forest.close(
                claims[0], answer("x"), settled(verification(Verdict.WRONG_ANSWER, public=3))
            )
        (tree,) = forest.trees
        assert len(tree.written) == nodes and forest.end(tree) is end


def test_tokens_of_all_answers_count_towards_the_budget():
    search = SearchConfig(nodes_per_tree=8, tokens_per_tree=3)
    forest = Forest(PROBLEMS[:1], AGENTS, search, public_score, [1])
    while claims := forest.claim(forest.trees):
        forest.close(claims[0], answer("x"), settled(verification(Verdict.WRONG_ANSWER)))
    (tree,) = forest.trees
    assert (len(tree.written), forest.end(tree)) == (3, TreeEnd.TOKENS)


def test_verdicts_that_depend_on_machine_load_are_counted():
    def verdict_of(rng):
        verdict = verification(Verdict.PASSED)
        return replace(verdict, strain=0.9 if rng.random() < 0.5 else 0.1)

    forest = grow(1, verdict_of)
    near = [n for t in forest.trees for n in t.written.values() if n.verification.strain > 0.5]
    credits = [Credit(np.zeros(8), np.zeros(8), False) for _ in forest.trees]
    assert 0 < StepFigures.of(forest.trees, credits, AGENTS).near_limits == len(near) < 24


def test_a_node_keeps_few_objects_for_the_garbage_collector():
    gc.collect()
    gc.freeze()
    try:
        forest = grow(3, sometimes, nodes=200, depth=1)
        gc.collect()  # tuples and dicts without containers are no longer tracked
        tracked = len(gc.get_objects())
    finally:
        gc.unfreeze()
    nodes = sum(len(tree.written) for tree in forest.trees)
    assert tracked / nodes < 11, tracked / nodes


def test_a_closed_node_has_the_draws_of_its_expansion():
    search = SearchConfig(nodes_per_tree=30)
    forest = Forest(PROBLEMS[:1], AGENTS, search, training_score(CreditConfig()), [7])
    rng = np.random.default_rng(7)
    while claims := forest.claim(forest.trees):
        for claim in claims:
            (node,) = forest.close(claim, answer("a program"), settled(sometimes(rng)))
            assert node.draws == claim.expansion.draws
    assert max(len(node.draws["levels"]) for node in forest.trees[0].written.values()) > 1
