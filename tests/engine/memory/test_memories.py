"""Tests of what outlives a step: saved with the run, resumed bit for bit, forked as methods say."""

import json

import pytest

from engine.memory.memories import Kept, Memories
from engine.memory.pass_rates import PassRates
from engine.memory.protocol import OnFork, SeenTree
from tests.engine.memory.runs import Run
from tests.helpers.plugin_packages import a_package, installed

STEPS = 5


def tree(problem, *scores, parents=None):
    """A tree of one agent."""
    nodes = range(1, len(scores) + 1)
    return SeenTree(problem, nodes, parents or [0] * len(scores), ["oak"] * len(scores), scores,
                    filtered=False)  # fmt: skip


@pytest.mark.parametrize("killed_after", range(STEPS))
def test_a_run_that_resumes_is_the_run_that_was_not_killed(killed_after):
    whole = Run()
    expected = [whole.grow() for _ in range(STEPS)]
    cut = Run()
    for _ in range(killed_after):
        cut.grow()
    saved = cut.state()
    cut.grow()  # lost with the process
    resumed = Run.resumed(saved)
    assert [resumed.grow() for _ in range(killed_after, STEPS)] == expected[killed_after:]
    assert resumed.state() == whole.state()


def test_each_memory_changes_what_is_planted():
    """Otherwise the test above would prove nothing."""
    run = Run()
    for _ in range(STEPS):
        run.grow()
    saved = json.loads(run.state())
    expected = Run.resumed(json.dumps(saved)).grow()
    assert set(saved["memory"]) == {
        "training.sampler", "search.allocator", "search.strategy", "credit.advantage",
    }  # fmt: skip
    for path in saved["memory"]:
        others = {p: s for p, s in saved["memory"].items() if p != path}
        assert Run.resumed(json.dumps(saved | {"memory": others})).grow() != expected, path


def test_a_checkpoint_from_before_memories_resumes_with_todays_order():
    default = {"training": {"trees_per_step": 4}}
    run = Run(default)
    steps = [run.grow() for _ in range(3)]
    assert [number for step in steps for number, *_ in step] == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]
    resumed = Run.resumed('{"step": 1, "begun": 4}', default)
    assert [resumed.grow(), resumed.grow()] == steps[1:]


def test_draws_whose_trees_did_not_begin_are_drawn_again():
    run = Run()
    for _ in range(2):
        run.grow()
    ahead = run.planting.drawn(run.begun, 6)
    assert run.planting.drawn(run.begun, 4) == ahead[:4]
    # Rates change after the draw, and a resume does not draw anew.
    run.memories.observe(9, [tree(n, *([1.0] * 4 if n else [0.0, 1.0])) for n in range(6)])
    assert run.planting.drawn(run.begun, 6) == ahead
    assert Run.resumed(run.state()).planting.drawn(run.begun, 6) == ahead
    with pytest.raises(ValueError, match="are done with"):
        run.planting.drawn(run.begun - 1, 1)


BY_RATE = """
NEEDS = {"pass_rates"}

def over_group(rewards_N, context):
    return rewards_N - context["pass_rates"]
"""


def test_a_column_of_earlier_pass_rates_is_remembered_where_a_method_needs_it(tmp_path):
    points = {"grove.advantages": {"by_rate": "grove_toy.by_rate"}}
    credit = {"advantage": "by_rate", "dynamic_filter": False, "shaping_gamma": 0.0}
    settings = {"credit": credit, "training": {"trees_per_step": 4}}
    with installed(a_package(tmp_path, {"by_rate": BY_RATE}, points)):
        run, rates = Run(settings), PassRates()
        for step in range(4):
            if step == 2:  # every problem was visited once, or all but two
                run = Run.resumed(run.state(), settings)
            trees = run.grow()
            for number, nodes, advantages in trees:
                before = rates.rates_of([number])[0]
                assert advantages == [score - before for _, _, score, _ in nodes], step
            rates.observe(step, [
                tree(number, *(one[2] for one in nodes), parents=[one[0] for one in nodes])
                for number, nodes, _ in trees
            ])  # fmt: skip
        assert (
            "pass_rates" in run.memories and len({one for one, *_ in rates.state()["visits"]}) == 6
        )
    assert "pass_rates" not in Run().memories, "nobody needs it"


def memories(on_fork, method="rates"):
    rates = PassRates()
    rates.on_fork = on_fork
    return Memories({"search.allocator": Kept(method, rates)})


@pytest.mark.parametrize(
    ("on_fork", "same_problems", "expected"),
    [
        (OnFork.KEEP, False, [1.0]),
        (OnFork.SAME_PROBLEMS, True, [1.0]),
        (OnFork.SAME_PROBLEMS, False, [0.5]),
        (OnFork.LEAVE, True, [0.5]),
    ],
)
def test_a_fork_takes_over_what_the_method_says(on_fork, same_problems, expected):
    parent, fork = memories(on_fork), memories(on_fork)
    parent.observe(1, [tree(3, 1.0)])
    fork.fork(json.loads(json.dumps(parent.state())), same_problems)
    assert fork["search.allocator"].rates_of([3]) == expected


def test_state_goes_to_the_method_that_wrote_it_and_to_no_other():
    parent, other = memories(OnFork.KEEP), memories(OnFork.KEEP, method="other")
    parent.observe(1, [tree(3, 1.0)])
    other.restore(parent.state())
    assert other["search.allocator"].rates_of([3]) == [0.5]
    other.fork(parent.state() | {"training.sampler": {"method": "x", "state": {}}}, True)
    assert other["search.allocator"].rates_of([3]) == [0.5]


def test_pass_rates_are_those_of_first_attempts_at_the_last_visit():
    rates = PassRates()
    assert rates.rates_of([0]) == [0.5]
    rates.observe(1, [tree(0, 1.0, 0.0, 0.5, None, 1.0, parents=[0, 0, 0, 0, 2])])
    assert rates.rates_of([0]) == [1 / 3]
    rates.observe(2, [tree(0, 0.0), tree(1, 1.0), tree(0, 1.0, 1.0), tree(2, None)])
    assert rates.rates_of([0, 1]) == [2 / 3, 1.0]
    assert rates.rates_of([2]) == [(2 / 3 + 1.0) / 2] and rates.visited(2) is None
    assert rates.steps == 2
