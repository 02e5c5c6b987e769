"""Tests of composers: which rows an update gets, and what the step says of those that left."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.config.agents import OptimizerConfig
from engine.config.base import Settings
from engine.config.errors import ConfigError
from engine.config.training import TrainingConfig
from engine.events.log import EventLog
from engine.memory.memories import Memories
from engine.policy.learner.objective import Objective, OptimizerGroup
from engine.policy.learner.rows import DEMONSTRATION, TrainingRow
from engine.recipes import load_recipe
from engine.training.compose import COMPOSERS
from engine.training.compose.composer import (
    ComposeContext,
    Composition,
    RowKind,
    Shown,
    Update,
    checked,
    composer_of,
    stream,
)
from engine.training.compose.methods import luffy, shuffle
from engine.training.memories import COMPOSE, composer_memory
from engine.training.telemetry import StepRecorder, composed
from engine.training.update_coordinator import UpdateCoordinator
from tests.engine.memory.runs import Run
from tests.helpers.plugin_packages import EXAMPLE, a_package, installed

LOSS = load_recipe("demo").loss


def rows_of(advantages_by_tree):
    return [
        TrainingRow([1], [2], [-0.5], advantage, 0, tree=tree, node=node)
        for tree, advantages in advantages_by_tree.items()
        for node, advantage in enumerate(advantages, 1)
    ]


def context(step=1, policy=0, minibatches=1, **options):
    config = load_recipe("demo", {"training.minibatches": minibatches})
    return ComposeContext(
        "oak", config, stream(0, step, policy), options=shuffle.Options(**options)
    )


def demonstrate(owner, trees):
    """A demonstration of every problem but the last."""
    rows = {
        tree: TrainingRow([1], [3, 4], [0.0, 0.0], 0.0, 0, tree=tree, node=DEMONSTRATION)
        for tree, number in trees.items()
        if number < 9
    }
    missing = len(trees) - len(rows)
    return Shown(rows, {"no_reference": missing} if missing else {})


def group(tree, number, rewards, wrote=None):
    """Rows of the nodes of a tree that this policy `wrote`, by index; of all without."""
    means = {"group_rewards": float(np.mean(rewards)), "group_sizes": float(len(rewards))}
    return [
        TrainingRow([1], [2], [-0.5], reward - means["group_rewards"], 0, tree=tree, node=node + 1,
                    columns={"problems": number, "rewards": reward, **means})
        for node, reward in enumerate(rewards)
        if wrote is None or node in wrote
    ]  # fmt: skip


def by_luffy(rows):
    """(advantages of nodes, advantages of demonstrations by tree, composition)."""
    config = load_recipe("luffy")
    one = ComposeContext("oak", config, stream(0, 1, 0), demonstrate=demonstrate)
    composition = checked("luffy", rows, luffy.compose(rows, one), config.loss)
    (update,) = composition.updates
    order = [row.is_demonstration for row in update.rows]
    assert order == sorted(order), "minibatches share demonstrations that come last"
    assert all(row.columns == {} for row in update.rows), "what the loss needs"
    own = {(row.tree, row.node): row.advantage for row in update.rows if not row.is_demonstration}
    shown = {row.tree: row.advantage for row in update.rows if row.is_demonstration}
    return own, shown, composition


def test_luffy_centres_over_the_nodes_of_all_agents_and_the_demonstration():
    own, shown, composition = by_luffy(group(1, 4, [0.0, 1.0, 0.0, 0.0], wrote=(0, 1)))
    assert own == {(1, 1): pytest.approx(-0.4), (1, 2): pytest.approx(0.6)}
    assert shown == {1: pytest.approx(0.6)}
    assert composition.rows() == {"rollout": 2, "demonstration": 1}
    own, shown, _ = by_luffy([*group(1, 4, [1.0, 1.0, 1.0]), *group(2, 5, [0.0] * 7)])
    assert {own[1, node] for node in (1, 2, 3)} == {0.0} and shown[1] == 0.0
    assert own[2, 7] == pytest.approx(-0.125) and shown[2] == pytest.approx(0.875)
    shaped = by_luffy(group(1, 4, [1.25, -0.5]))
    assert shaped[0][1, 1] == pytest.approx(1.25 - 1.75 / 3), "of rewards, not of scores"


def test_a_tree_without_a_demonstration_keeps_its_advantages_and_is_counted():
    own, shown, composition = by_luffy([*group(1, 9, [0.0, 1.0]), *group(2, 3, [0.0])])
    assert own[1, 1] == -0.5 and own[1, 2] == 0.5 and list(shown) == [2]
    assert composed([composition]) == {
        "left": {"no_reference": 1}, "rows": {"rollout": 3, "demonstration": 1},
    }  # fmt: skip
    assert by_luffy([])[:2] == ({}, {})


def test_demonstrations_and_optimizers_of_an_update_are_checked():
    rows = rows_of({1: [1.0]})
    shown = [replace(row, node=DEMONSTRATION) for row in rows]
    with pytest.raises(ValueError, match=r"loss = 'gspo' of an update: takes demonstrations for"):
        checked("some", [], Composition([Update(shown)]), LOSS)
    both = Composition([Update(rows), Update(shown, loss="mixed_policy")])
    assert checked("some", rows, both, LOSS).updates[1].sampled_trees == []
    nameless = Update(rows, optimizer=OptimizerGroup("Mine", OptimizerConfig()))
    with pytest.raises(ValueError, match=r"optimizer = 'Mine' of an update; name it by"):
        checked("some", rows, Composition([nameless]), LOSS)
    assert replace(nameless, loss="ppo").objective == Objective("ppo", nameless.optimizer)


@pytest.mark.parametrize(
    ("overrides", "path", "reason"),
    [
        (
            {"loss.policy": "ppo"},
            "loss.policy",
            "would take the demonstrations of training.compose",
        ),
        ({"training.compose": "all"}, "loss.policy", "choose training.compose = luffy"),
        ({"credit.advantage": "grpo"}, "credit.advantage", "as dr_grpo does; set it to dr_grpo"),
    ],
)
def test_settings_that_do_not_go_with_demonstrations_are_refused(overrides, path, reason):
    with pytest.raises(ConfigError) as refused:
        load_recipe("luffy", overrides)
    (problem,) = refused.value.problems
    assert problem["path"] == path and reason in problem["reason"]


def names(update):
    return [(row.tree, row.node) for row in update.rows]


def test_all_is_one_update_from_the_whole_batch_and_says_nothing():
    rows = rows_of({1: [1.0, -1.0], 2: [0.0]})
    composition = COMPOSERS["all"].compose(rows, context())
    assert [update.rows for update in composition.updates] == [rows]
    assert composed([checked("all", rows, composition, LOSS)]) == {}
    assert load_recipe("demo").training.compose == "all"


def test_each_policy_and_step_has_random_numbers_of_its_own():
    drawn = [stream(7, step, policy).random() for step in (1, 2) for policy in (0, 1)]
    assert len({*drawn, stream(8, 1, 0).random()}) == 5
    assert stream(7, 2, 1).random() == drawn[-1]


def test_a_row_that_is_not_learned_from_needs_a_counted_reason():
    rows = rows_of({1: [1.0, -1.0, 0.0]})
    half = Composition([Update(rows[:1])], {"dull": 2})
    assert checked("some", rows, half, LOSS) is half
    for left in ({}, {"dull": 1}, {"dull": 3}):
        with pytest.raises(ValueError, match=r"training.compose = 'some': 2 of 3 rows .* count"):
            checked("some", rows, Composition([Update(rows[:1])], left), LOSS)
    with pytest.raises(ValueError, match=r"loss = 'none' of an update: choose one of"):
        checked("some", rows, Composition([Update(rows, loss="none")]), LOSS)
    with pytest.raises(ValueError, match=r"left has \['Too dull'\]; name reasons"):
        checked("some", rows, Composition([Update(rows[:1])], {"Too dull": 2}), LOSS)


def test_an_update_by_another_loss_needs_what_the_run_has():
    rows = rows_of({1: [1.0, -1.0]})
    by_labels = Composition([Update(rows, loss="pacs")])
    with pytest.raises(ValueError, match=r"loss = 'pacs' of an update: needs scores of every row"):
        checked("some", rows, by_labels, LOSS)
    labelled = [replace(row, columns={"scores": 1.0}) for row in rows]
    whole = Composition([Update(labelled, loss="pacs")])
    assert checked("some", labelled, whole, LOSS) is whole


def test_the_step_counts_rows_by_reason_and_by_kind_over_all_policies():
    rows = rows_of({1: [1.0, -1.0, 0.0]})
    one = Composition([Update(rows[:1]), Update(rows[1:2], RowKind.REPLAY)], {"dull": 1})
    two = Composition([Update(rows), Update([], RowKind.REPLAY)], {"dull": 2, "old": 1})
    assert composed([one, two]) == {
        "left": {"dull": 3, "old": 1}, "rows": {"rollout": 4, "replay": 1},
    }  # fmt: skip
    assert composed([two]) == {"left": {"dull": 2, "old": 1}}
    assert composed([Composition([Update(rows)], {"dull": 0})]) == {}


@pytest.mark.parametrize("name", COMPOSERS.own)
def test_every_composer_repeats_itself_and_loses_no_row_without_a_reason(name):
    rows = rows_of({tree: np.random.default_rng(tree).normal(size=5).tolist() for tree in (1, 2)})
    needs = dict.fromkeys(COMPOSERS[name].needs, 1.0)
    rows = [replace(row, columns=needs) for row in rows]
    config = load_recipe({"luffy": "luffy"}.get(name, "demo"))
    options = TrainingConfig(compose=name).options("compose")
    assert options is None or isinstance(options, Settings)
    for batch in (rows, rows[:1], []):
        made = []
        for _ in range(2):
            one = ComposeContext(
                "oak", config, stream(0, 1, 0), demonstrate=demonstrate, options=options
            )
            made.append(checked(name, batch, COMPOSERS[name].compose(batch, one), config.loss))
        assert [names(u) for u in made[0].updates] == [names(u) for u in made[1].updates]
        assert batch or not any(update.rows for update in made[0].updates)


def test_a_module_without_compose_is_no_composer_and_an_unknown_one_is_refused():
    with pytest.raises(ValueError, match="has no function compose"):
        composer_of(SimpleNamespace(memory=print))
    with pytest.raises(ValueError, match=r"NEEDS has colours; choose among depths,"):
        composer_of(SimpleNamespace(compose=print, NEEDS={"colours"}))
    with pytest.raises(ConfigError, match=r"training.compose = 'nothing': choose one of all,"):
        load_recipe("demo", {"training.compose": "nothing"})


def test_a_composer_of_a_package_learns_again_from_what_its_memory_kept():
    with installed(EXAMPLE):
        config = load_recipe("demo", {"training.compose": "again", "training.again.rows": 2})
        memories = Memories(composer_memory(config))
        options = config.training.options("compose")

        def step(number, rows):
            one = ComposeContext(
                "oak", config, stream(0, number, 0), memory=memories[COMPOSE], options=options
            )
            result = checked("again", rows, COMPOSERS["again"].compose(rows, one), LOSS)
            memories.observe(number, [])
            return [(update.kind, names(update)) for update in result.updates if update.rows]

        assert step(1, rows_of({1: [1.0, -1.0, 2.0, 3.0]})) == [
            (RowKind.ROLLOUT, [(1, 1), (1, 2), (1, 3), (1, 4)])
        ]
        saved = json.loads(json.dumps(memories.state()))
        expected = [(RowKind.ROLLOUT, [(2, 1)]), (RowKind.REPLAY, [(1, 3), (1, 4)])]
        assert step(2, rows_of({2: [-1.0]})) == expected
        memories = Memories(composer_memory(config))
        memories.restore(saved)
        assert step(2, rows_of({2: [-1.0]})) == expected


SEEING = """
    from engine.memory.protocol import OnFork
    from engine.training.compose.composer import Composition, Update

    class Seen(list):
        on_fork = OnFork.LEAVE

    def memory(config):
        return Seen()

    def compose(rows, context):
        context.memory.extend((tree.problem, tree.filtered) for tree in context.trees)
        return Composition([Update(rows)])
"""
"""A composer of another package that keeps which trees it was shown."""


def test_a_composer_sees_all_trees_of_the_step_filtered_ones_too_and_without_a_batch(tmp_path):
    points = {"grove.composers": {"seeing": "grove_toy.seeing"}}
    with installed(a_package(tmp_path, {"seeing": SEEING}, points)):
        run = Run({"training": {"compose": "seeing", "batch_nodes": 9999}})
        forest = run.planting.forest([0, 1, 2, 3, 4, 5], 1, 0, refill=False)
        while claims := forest.claim(forest.trees):
            for claim in claims:
                run._close(forest, claim)
        memories = Memories(composer_memory(run.config))
        learning = UpdateCoordinator(run.config, SimpleNamespace(judge=None), memories)
        log = EventLog(tmp_path)
        recorder = StepRecorder(log, 1)
        credits = learning.credit(forest.trees, recorder)
        learning.start(recorder, 0.0)  # calls no actor: no buffer holds a batch
        log.close()
    filtered = [credit.filtered for credit in credits]
    assert set(filtered) == {True, False}
    assert memories[COMPOSE] == list(enumerate(filtered)) * len(learning.buffers)
    assert not learning.calls and set(learning.compositions) == {"oak", "elm"}


def test_shuffle_keeps_the_pairs_of_most_contrast_in_each_tree_and_counts_the_rest():
    rows = rows_of({1: [1.2, -0.7, 0.1, -0.2], 2: [0.9, -0.9, 0.0, 0.0, 0.0], 3: [5.0]})
    composition = checked("shuffle", rows, shuffle.compose(rows, context(rounds=1)), LOSS)
    (update,) = composition.updates
    assert sorted(names(update)) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert composition.left == {"unpaired": 2, "low_contrast": 4}


def test_shuffle_draws_as_many_pairs_as_stay_and_none_twice_in_a_round():
    advantages = {tree: [float(tree), -float(tree)] for tree in range(1, 12)}
    for rounds, sizes in ((1, [11]), (2, [6, 5]), (8, [2, 2, 2, 1, 1, 1, 1, 1]), (99, [1] * 11)):
        rows = rows_of(advantages)
        composition = checked(
            "shuffle", rows, shuffle.compose(rows, context(keep=1.0, rounds=rounds)), LOSS
        )
        (update,) = composition.updates
        pairs = [{one, two} for one, two in zip(*[iter(names(update))] * 2, strict=True)]
        start = 0
        for size in sizes:
            drawn = [min(pair) for pair in pairs[start : start + size]]
            assert len(set(drawn)) == size
            start += size
        assert start == len(pairs) == 11
        undrawn = 11 - len({min(pair) for pair in pairs})
        assert composition.left == ({"not_drawn": 2 * undrawn} if undrawn else {})


@pytest.mark.parametrize("minibatches", [2, 3, 4])
def test_the_rows_of_a_pair_are_in_one_minibatch(minibatches):
    rows = rows_of({tree: [1.0, -1.0, 0.5, -0.5] for tree in range(12)})
    (update,) = shuffle.compose(rows, context(minibatches=minibatches, keep=1.0)).updates
    for start in range(minibatches):
        part = update.rows[start::minibatches]
        assert sum(row.advantage for row in part) == pytest.approx(0)


def test_pairs_are_drawn_by_their_advantages():
    chances = np.array([0.6, 0.3, 0.1])
    draws = [shuffle.draw(chances, 3, stream(1, step, 0)) for step in range(2000)]
    drawn = Counter(pair for pairs in draws for pair in pairs)
    shares = [drawn[pair] / 6000 for pair in range(3)]
    assert shares == pytest.approx(chances, abs=0.03)


def test_pairs_without_advantage_come_last():
    assert sorted(shuffle.draw(np.array([0.0, 1.0, 0.0]), 1, stream(0, 1, 0))) == [0, 1, 2]
    draws = [shuffle.draw(np.array([0.0, 1.0, 0.0]), 2, stream(0, step, 0)) for step in range(50)]
    assert all(1 in pairs[:2] and pairs[2] == 1 for pairs in draws)
