"""Tests of every rule on a planted fault, on the same run without it, and at its edges."""

import math
from dataclasses import replace

import pytest

from engine.events.states import HEALTH_RULES, HealthState, StopReason
from engine.health import RULES
from engine.health.monitor import Monitor
from engine.health.rules import held_out_falls, slow_step
from engine.health.setup import Setup
from tests.engine.health.planted import Node, Step, changes, equal_trees, some_trees
from tests.helpers.large import large_but
from tests.helpers.sample_log import Sample, sample_events

STEP = Step()
CLIPS = Setup(clips=True, shapes=True, gradient_limits={"oak": 1.0, "fern": 1.0})
LOOP = Node("oak", 0.0, "x", ("if", " x", ":") * 20, StopReason.MAX_TOKENS)


def of_oak(**figures):
    return replace(STEP, updates={"oak": figures})


def validated(step, pass1, reward):
    rewards = {"oak": reward, "fern": 0.5}
    validation = {"oak": pass1, "fern": 0.5} if step % 10 == 0 else None
    return replace(STEP, rewards=rewards, validation=validation)


def overfitting(falls=0.3, rises=0.3):
    """Ninety steps whose validation falls, and whose reward rises, after the first half."""
    late = [step > 45 for step in range(1, 91)]
    return [
        validated(step, 0.6 - falls * is_late, 0.5 + rises * is_late)
        for step, is_late in enumerate(late, start=1)
    ]


def with_nodes(change, steps=12):
    """Steps whose nodes are changed by `change(node, tree, index)`."""
    return [
        replace(
            STEP,
            trees=tuple(
                tuple(change(node, at, index) for index, node in enumerate(tree))
                for at, tree in enumerate(some_trees(step))
            ),
        )
        for step in range(1, steps + 1)
    ]


def of_the_same(share):
    """Oak gives one program in this share of its answers."""
    return with_nodes(
        lambda node, tree, index: (
            replace(node, program="return 0")
            if node.agent == "oak" and (index // 2) < share * 4
            else node
        )
    )


def without(share):
    return with_nodes(
        lambda node, tree, index: (
            replace(node, program="")
            if node.agent == "oak" and index // 2 + 4 * (tree % 4) < share * 16
            else node
        )
    )


def looping(share):
    return with_nodes(
        lambda node, tree, index: (
            replace(LOOP, program=node.program)
            if node.agent == "oak" and (index // 2) < share * 4
            else node
        )
    )


def truncated(count):
    """Oak's answers of which `count` of four reach their limit."""
    return with_nodes(
        lambda node, tree, index: (
            replace(node, stop=StopReason.MAX_TOKENS)
            if node.agent == "oak" and index // 2 < count
            else node
        )
    )


def unshaped(count):
    """Trees of which `count` of eight in each step have their scores as shaped rewards."""
    return with_nodes(
        lambda node, tree, index: replace(node, shaped=node.score) if tree < count else node
    )


def first_bad(count, bad, after=None):
    """`count` healthy steps, then ten bad ones."""
    return [STEP] * count + [bad] * (10 if after is None else after)


FAULTS = {
    "entropy_collapse": (
        first_bad(30, of_oak(entropy=0.001)), CLIPS, "oak", 31, "nats per token"
    ),
    "entropy_runaway": (first_bad(30, of_oak(entropy=1.5)), CLIPS, "oak", 31, "up from 0.4"),
    "equal_groups": (
        [replace(STEP, trees=equal_trees(step, 0.0)) for step in range(1, 8)], CLIPS, "", 1,
        "40 of 40 trees",
    ),
    "nothing_clipped": ([of_oak(clip_fraction=0.0)] * 25, CLIPS, "oak", 1, "20 updates in a row"),
    "everything_clipped": (
        first_bad(7, of_oak(clip_fraction=0.95)), CLIPS, "oak", 8, "of the last 5 updates is 95%"
    ),
    "mismatch": (first_bad(7, of_oak(mismatch=0.4)), CLIPS, "oak", 8, "nats per token"),
    "gradient_spike": (
        first_bad(25, of_oak(gradient_norm=40.0), 1), CLIPS, "oak", 26, "40, 80 times"
    ),
    "held_out_falls": (overfitting(), CLIPS, "oak", 30, "fell from 60.0% to 40.0%"),
    "repeated_answers": (of_the_same(0.75), CLIPS, "oak", 1, "24 of 32 programs"),
    "unshaped": (unshaped(8), CLIPS, "", 1, "In all 40 trees"),
    "truncated_answers": (truncated(4), CLIPS, "oak", 1, "160 of 160 answers"),
    "answer_loops": (looping(0.5), CLIPS, "oak", 1, "80 of 160 answers"),
    "no_programs": (without(1.0), CLIPS, "oak", 1, "160 of 160 answers"),
    "slow_step": (first_bad(12, replace(STEP, seconds=60.0), 1), CLIPS, "", 13, "60 s, 30 times"),
    "idle_agent": (
        [replace(STEP, trees=some_trees(step, ("oak",))) for step in range(1, 8)], CLIPS, "fern",
        1, "None of the 320 nodes",
    ),
}  # fmt: skip
"""By rule: steps, setup, the agent, the first step of the fault, part of what is seen."""


@pytest.mark.parametrize("name", RULES)
def test_a_planted_fault_opens_exactly_its_warning(name):
    steps, setup, agent, since, seen = FAULTS[name]
    opened = [one for one in changes(steps, setup) if one.state is HealthState.OPENED]
    assert {one.rule for one in opened} == {name}
    first = opened[0]
    assert (first.agent, first.since) == (agent, since)
    assert seen in first.seen
    assert first.title == RULES[name].TITLE and first.advice == RULES[name].ADVICE
    assert first.figures and all(map(math.isfinite, first.figures.values()))
    assert first.since <= first.step and first.since_time > 1_763_700_000


MILD = {
    "entropy_collapse": first_bad(30, replace(of_oak(entropy=0.001), rewards={"oak": 0.95})),
    "entropy_runaway": first_bad(30, of_oak(entropy=0.75)),
    "equal_groups": [
        replace(STEP, trees=equal_trees(step, 1.0, 6) + some_trees(step)[:2]) for step in range(12)
    ],
    "nothing_clipped": [of_oak(clip_fraction=0.0 if step % 19 else 0.001) for step in range(60)],
    "everything_clipped": first_bad(7, of_oak(clip_fraction=0.75)),
    "mismatch": first_bad(7, of_oak(mismatch=0.08)),
    "gradient_spike": first_bad(25, of_oak(gradient_norm=4.9)),
    "held_out_falls": overfitting(falls=0.09),
    "repeated_answers": of_the_same(0.25),
    "unshaped": unshaped(7),
    "truncated_answers": truncated(3),
    "answer_loops": looping(0.5)[:2] + with_nodes(lambda node, *_: node),
    "no_programs": without(0.8),
    "slow_step": first_bad(12, replace(STEP, seconds=2.0, validate_seconds=500.0)),
    "idle_agent": [
        replace(STEP, trees=some_trees(step, ("oak",) if step % 5 else ("oak", "fern")))
        for step in range(1, 25)
    ],
}
"""By rule: the same run with less of the fault, which is none."""


@pytest.mark.parametrize("name", RULES)
def test_less_of_the_fault_is_none(name):
    assert changes(MILD[name], CLIPS) == []


def test_a_healthy_run_has_no_warning():
    assert changes([STEP] * 120, CLIPS) == []


@pytest.mark.parametrize("seed", large_but([0], range(100)))
def test_a_run_that_learns_has_no_warning(seed):
    monitor = Monitor(CLIPS)  # the settings under which every rule judges
    for event in sample_events(Sample(seed=seed, steps=40, trees=8)):
        monitor.apply(event)
        if event.kind == "step.end":
            assert monitor.after_step() == []
    assert len(monitor.history.steps) == 40


def test_nothing_is_clipped_where_nothing_can_be():
    steps = [of_oak(clip_fraction=0.0)] * 40
    assert changes(steps, Setup(clips=False)) == []


def test_nothing_is_clipped_at_the_end_of_a_schedule():
    steps = [STEP] * 5 + [of_oak(clip_fraction=0.0, learning_rate=5e-5)] * 40
    assert changes(steps, CLIPS) == []


def test_nothing_is_shaped_where_shaping_is_off():
    assert changes(unshaped(8), replace(CLIPS, shapes=False)) == []


def test_the_site_knows_the_names_of_the_rules():
    assert tuple(RULES) == HEALTH_RULES


def test_solved_and_failed_groups_are_counted_apart():
    steps = [replace(STEP, trees=equal_trees(step, float(step % 2))) for step in range(1, 8)]
    (warning,) = changes(steps, CLIPS)
    assert warning.figures["trees"] == 40 and warning.figures["failed"] == 16


def test_equal_scores_with_advantages_are_a_signal():
    flat = with_nodes(lambda node, *_: replace(node, score=0.5))
    assert [one.rule for one in changes(flat, CLIPS)] == ["equal_groups"]
    # As from further parts of a reward, which differ where scores do not.
    differing = with_nodes(lambda node, *_: replace(node, score=0.5, advantage=0.25))
    assert changes(differing, CLIPS) == []


def test_validation_that_falls_with_the_reward_is_another_fault():
    assert changes(overfitting(rises=-0.2), CLIPS) == []


def test_the_measurements_of_one_window_share_their_error():
    # 0.04 each: three of them 0.023, the difference of two windows 0.033.
    (warning,) = [one for one in changes(overfitting(), CLIPS) if one.agent == "oak"][:1]
    assert math.isclose(warning.figures["standard_error"], 0.04 * math.sqrt(2 / 3))
    assert changes(overfitting(falls=held_out_falls.ERRORS * 0.04 * math.sqrt(2 / 3) - 1e-6)) == []


def test_a_fraction_of_a_second_is_no_slow_step():
    quick = replace(STEP, seconds=0.2)
    slow = replace(STEP, seconds=0.2 + slow_step.EXCESS - 0.1)
    assert changes([quick] * 20 + [slow]) == []


def test_numbers_that_are_not_finite_are_no_finding_and_no_failure():
    nan = {name: math.nan for name in ("entropy", "clip_fraction", "gradient_norm", "mismatch")}
    steps = [STEP.with_all(**nan)] * 40
    assert changes([replace(step, validation={"oak": math.nan}) for step in steps], CLIPS) == []
