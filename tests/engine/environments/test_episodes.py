"""Tests of episodes of several turns, by a toy: an expansion plays until it has its score."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from engine.config.credit import CreditConfig
from engine.config.search import SearchConfig
from engine.credit.assign import assign_credit
from engine.environments.types import Move, Settled, Written
from engine.events.log import EventLog, read_all
from engine.events.states import Verdict
from engine.events.vocabulary import StopReason
from engine.inference.selection import tree_answer
from engine.policy.types import Answer, Generation, Request
from engine.problems.problem import CallTest, Problem
from engine.rollout.episodes import next_turn
from engine.rollout.forest import Forest, public_score, training_score
from engine.rollout.growth import close_nodes, opened_tasks
from engine.rollout.recorder import TreeRecorder
from engine.rollout.records import record_of
from engine.rollout.scheduler import Task, VerifiedTask
from engine.search.node import NodeState
from engine.search.strategies import planted
from engine.search.tree import SearchTree
from tests.engine.environments.ladder import Ladder

TEST = CallTest((1,), 1)
PROBLEMS = [
    Problem(f"ladder-{digits}", f"Guess {digits}:", "solve", (TEST,), (TEST,), tags=(digits,))
    for digits in ("123", "456")
]
SEARCH = SearchConfig(nodes_per_tree=4, nodes_in_flight=2)
FRACTION = training_score(CreditConfig(score="fraction"))


def answered(text, action):
    output = [7] * len(text or ".")
    logprobs = [-0.5] * len(output)
    return Answer(Generation([1], output, logprobs, StopReason.END_OF_TEXT, 0, 0.0), action, text)


class Play:
    """Grows trees with the toy; `text(prompt, name)` is an agent's answer."""

    def __init__(self, text, folder, search=SEARCH, judge=FRACTION):
        self.text, self.ladder, self.log = text, Ladder(), EventLog(folder)
        self.recorder = TreeRecorder(self.log, 1)
        self.forest = Forest(PROBLEMS, ("oak", "elm"), search, judge, [3])
        self.prompts = []

    def grow(self):
        forest, recorder = self.forest, self.recorder
        recorder.open_trees(forest.trees)
        while tasks := list(opened_tasks(forest, forest.trees, recorder)):
            for number, task in enumerate(tasks):
                close_nodes(forest, self._played(number, task), recorder)
        assert all(forest.is_spent(tree) for tree in forest.trees)
        self.log.close()
        return forest.trees

    def _played(self, number, task):
        request = task.request
        (messages,) = self.ladder.messages(request, "")
        prompt = messages[-1]["content"]
        self.prompts.append(prompt)
        text = self.text(prompt, request.name)
        action = self.ladder.read(request.task, Written(text))
        move = Move(request.task, request.observation, action.text)
        (settled,) = self.ladder.settle([move], lambda pairs: [])
        return VerifiedTask(number, task, answered(text, action.text), settled)


def right(prompt, name):
    return f"It is {prompt.split()[1][int(prompt[-2]) - 1]}."


def sometimes_right(prompt, name):
    return right(prompt, name) if (name[-1] + name[-2]) % 3 else "It is 0."


def episodes(tree):
    """Ids of the turns of each episode, in order; an episode begins below the root or a closed
    node, and its turns have the score of the last."""
    found = []
    for node in tree.search.nodes[1:]:
        if found and node.parent == found[-1][-1] and not tree.written[node.parent].is_answer:
            found[-1].append(node.id)
        elif mine := next((one for one in found if one[-1] == node.parent), None):
            mine.append(node.id)
        else:
            found.append([node.id])
    return found


def test_turns_are_nodes_whose_parent_is_an_observation(tmp_path):
    play = Play(right, tmp_path, SearchConfig(nodes_per_tree=2, max_depth=1))
    for tree in play.grow():
        assert [len(turns) for turns in episodes(tree)] == [3, 3]
        for turns in episodes(tree):
            nodes = [tree.written[turn] for turn in turns]
            assert [node.parent for node in nodes] == [0, *turns[:-1]]
            assert [node.observation for node in nodes] == [
                tree.problem.tags[0][:1], tree.problem.tags[0][:2], None,
            ]  # fmt: skip
            assert [node.score for node in nodes] == [1.0] * 3
            verdicts = [node.verification.verdict for node in nodes]
            assert verdicts == [Verdict.PLAYED, Verdict.PLAYED, Verdict.PASSED]
            assert [node.is_answer for node in nodes] == [False, False, True]
            assert {node.agent for node in nodes} == {nodes[0].agent}
        assert tree.solved and tree_answer(tree, {}) in [turns[-1] for turns in episodes(tree)]
    assert "Guess 123: 12, digit 3?" in play.prompts, "the prompt shows what was observed"


def test_an_expansion_is_one_of_the_budget_and_one_observation_however_many_turns_it_took(tmp_path):
    for tree in Play(sometimes_right, tmp_path, SearchConfig(nodes_per_tree=5)).grow():
        assert tree.search.expansions == 5 and tree.search.in_flight == 0
        assert len(tree.written) > 5
        observed = tree.search.strategy.tree_chooser.posteriors
        seen = sum(one.recorded()["a"] + one.recorded()["b"] - 1 for one in observed.values())
        assert seen == pytest.approx(5)
        begun = {turns[0] for turns in episodes(tree)}
        assert tree.search.strategy._arms.keys() <= {0, *(n.parent for n in tree.written.values())}
        assert len(begun) == 5


def test_an_episode_may_be_branched_at_a_turn_and_never_after_its_last(tmp_path):
    play = Play(sometimes_right, tmp_path, SearchConfig(nodes_per_tree=40))
    branched = 0
    for tree in play.grow():
        states = {node.id: node.state for node in tree.search.nodes}
        for node in tree.written.values():
            final = node.observation is None
            assert states[node.node] is (NodeState.FINAL if final else NodeState.SCORED)
            assert not final or not tree.search.nodes[node.node].children
        branched += sum(len(node.children) > 1 for node in tree.search.nodes[1:])
        with pytest.raises(ValueError, match="is final, only scored nodes expand"):
            last = next(n for n, state in states.items() if state is NodeState.FINAL)
            tree.search.open(SimpleNamespace(parent=last, agent="oak"))
    assert branched > 0


def test_an_answer_without_an_action_ends_the_episode_with_its_worth(tmp_path):
    def silent(prompt, name):
        return "pass" if "digit 2" in prompt else right(prompt, name)

    for tree in Play(silent, tmp_path, SearchConfig(nodes_per_tree=2, max_depth=1)).grow():
        for turns in episodes(tree):
            last = tree.written[turns[-1]]
            assert len(turns) == 2 and last.verification.verdict is Verdict.NO_PROGRAM
            assert {tree.written[turn].score for turn in turns} == {1 / 3}


def test_a_search_enters_no_episode_that_its_first_turn_ended(tmp_path):
    def mostly_silent(prompt, name):
        return "pass" if name[-1] % 4 else right(prompt, name)

    for tree in Play(mostly_silent, tmp_path, SearchConfig(nodes_per_tree=30)).grow():
        ended = [node for node in tree.search.nodes if node.state is NodeState.FINAL]
        assert sum(node.depth == 1 for node in ended) > 3
        assert not any(node.children for node in ended)


def test_a_technical_failure_drops_the_whole_episode_and_is_no_loss(tmp_path):
    def broken(prompt, name):
        return "9" if "digit 2" in prompt and name[-1] % 2 else right(prompt, name)

    play = Play(broken, tmp_path, SearchConfig(nodes_per_tree=6, max_depth=1))
    dropped = 0
    for tree in play.grow():
        for turns in episodes(tree):
            scores = {tree.written[turn].score for turn in turns}
            dropped += scores == {None}
            assert scores in ({None}, {1.0})
        credit = assign_credit(record_of(tree), CreditConfig(), 4)
        lost = [node.score is None for _, node in sorted(tree.written.items())]
        assert np.isnan(credit.advantages_N).tolist() == lost or credit.filtered
    assert 0 < dropped < 12


def test_a_limit_of_turns_ends_an_episode_as_truncated(tmp_path):
    search = SearchConfig(nodes_per_tree=1, turns_per_episode=2)
    for tree in Play(right, tmp_path, search).grow():
        (turns,) = episodes(tree)
        last = tree.written[turns[-1]]
        assert (len(turns), last.verification.verdict, last.score) == (2, Verdict.TRUNCATED, 2 / 3)
        assert "search.turns_per_episode = 2" in last.verification.error
        assert last.observation is None


def test_events_close_every_turn_with_the_score_of_its_episode(tmp_path):
    trees = Play(sometimes_right, tmp_path).grow()
    events = list(read_all(tmp_path))
    opened = {(e.tree, e.node): e.payload for e in events if e.kind == "node.open"}
    closed = {(e.tree, e.node): e.payload for e in events if e.kind == "node.close"}
    for tree in trees:
        for turns in episodes(tree):
            mine = [(tree.id, turn) for turn in turns]
            depth = opened[mine[0]]["depth"]
            assert [opened[node]["depth"] for node in mine] == [depth + n for n in range(len(mine))]
            assert [opened[node]["draws"] for node in mine[1:]] == [{"levels": []}] * (
                len(mine) - 1
            )
            assert len({closed[node]["score"] for node in mine}) == 1
            assert [closed[node]["verdict"] for node in mine[:-1]] == ["played"] * (len(mine) - 1)
    assert opened.keys() == closed.keys()
    json.dumps(list(closed.values()))


def test_each_turn_has_random_numbers_of_its_own_and_one_seed_gives_one_forest(tmp_path):
    shapes = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        play = Play(sometimes_right, tmp_path / folder)
        names = []
        play.text = lambda prompt, name, names=names: (
            names.append(name) or sometimes_right(prompt, name)
        )
        trees = play.grow()
        assert len(set(names)) == len(names)
        shapes.append([[(n.parent, n.agent, n.score) for n in t.written.values()] for t in trees])
    assert shapes[0] == shapes[1]


def test_without_tests_the_whole_score_guides_a_search(tmp_path):
    play = Play(right, tmp_path, judge=public_score)
    assert all(set(tree.scores()) == {1.0} for tree in play.grow())


def test_only_the_last_open_turn_of_an_episode_goes_on_or_closes():
    tree: SearchTree = planted(["oak"], SearchConfig(), np.random.default_rng(1))
    first = tree.open(tree.select())
    second = tree.go_on(first)
    assert (second.parent, second.depth, tree.in_flight, tree.expansions) == (first, 2, 1, 1)
    for act in (tree.go_on, lambda node: tree.close(node, 1.0)):
        with pytest.raises(ValueError, match=f"turn {second.node} follows it; only the last turn"):
            act(first)
    tree.close(second.node, 0.5, final=True)
    assert [node.score for node in tree.nodes[1:]] == [0.5, 0.5] and tree.in_flight == 0
    with pytest.raises(ValueError, match="is final; only an open node can go on"):
        tree.go_on(second.node)


def test_outside_of_trees_a_turn_follows_until_the_episode_or_its_limit_ends():
    ladder, task = Ladder(), Task("oak", Request(PROBLEMS[0]), "mark")
    turns = []
    while task:
        turns.append(task)
        digit = PROBLEMS[0].tags[0][task.turn - 1]
        move = Move(task.request.task, task.request.observation, digit)
        (settled,) = ladder.settle([move], lambda pairs: [])
        done = VerifiedTask(0, task, answered(digit, digit), settled)
        assert task.turn == 2 or not next_turn(done, 1)
        task = next_turn(done, 16)
    assert [one.request.observation for one in turns] == [None, "1", "12"]
    assert {one.mark for one in turns} == {"mark"} and settled.outcome.passed


def test_an_outcome_goes_on_only_as_played():
    outcome = Ladder().settle([Move(PROBLEMS[0], None, "1")], lambda pairs: [])[0].outcome
    assert Settled(outcome, "1").goes_on
    ended = Ladder().settle([Move(PROBLEMS[0], "12", "3")], lambda pairs: [])[0]
    assert not ended.goes_on and ended.observation is None
