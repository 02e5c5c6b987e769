"""Tests of how much is under way, on the worked numbers of APRIL and AReaL."""

import pytest

from engine.config.schema import ConfigError
from engine.config.training import TrainingConfig
from engine.rollout.admission import Admission, Flow
from tests.helpers.policies import tiny_config

OVERPROVISION = {
    "one long one": {
        "lengths": [3, 9, 2, 4, 3, 3, 5, 2], "target": 2, "provision": 4,
        "steps": [(3, [0, 2], {1: 3, 3: 3}), (3, [3, 4], {1: 6}), (2, [5, 7], {1: 8, 6: 2})],
    },
    "a third ends with the second": {
        "lengths": [2, 2, 2, 7, 4, 1, 6, 3], "target": 2, "provision": 4,
        "steps": [(2, [0, 1], {3: 2}), (1, [2, 5], {3: 3, 4: 1}), (3, [4, 7], {3: 6, 6: 3})],
    },
    "none beyond the target": {
        "lengths": [5, 1, 2, 6], "target": 2, "provision": 2,
        "steps": [(5, [0, 1], {}), (6, [2, 3], {})],
    },
}  # fmt: skip
"""Kind `partial_rollout`: one token per tick for whatever is in flight."""


@pytest.mark.parametrize("case", OVERPROVISION.values(), ids=OVERPROVISION)
def test_trees_beyond_those_of_a_step_are_carried_over_and_count_first(case):
    admission, target = Admission(case["provision"] - case["target"], 0), case["target"]
    written: dict[int, int] = {}
    begun = 0

    def whole():
        ends = [one for one, tokens in written.items() if tokens == case["lengths"][one]]
        return sorted(ends)

    for ticks, expected, carried in case["steps"]:
        room = admission.room(Flow(target, len(written)))
        written |= dict.fromkeys(range(begun, begun + room), 0)
        begun += room
        spent = 0
        while not admission.enough(Flow(target, len(written), len(whole()))):
            spent += 1
            for one in written:
                written[one] = min(written[one] + 1, case["lengths"][one])
        taken = whole()[:target]
        for one in taken:
            del written[one]
        left = {one: tokens for one, tokens in written.items() if one not in whole()}
        assert (spent, taken, left) == (ticks, expected, carried)


STALENESS_GATE = {
    0: [("submit", True), ("submit", True), ("submit", False), ("update", None), ("submit", True)],
    1: [("submit", True)] * 4
    + [("submit", False), ("reject", None), ("submit", True), ("submit", False)]
    + [("update", None), ("submit", True), ("submit", True), ("submit", False)],
}
"""Kind `staleness_gate` for batches of 2, by eta."""


@pytest.mark.parametrize("eta", STALENESS_GATE)
def test_a_tree_begins_only_as_many_steps_ahead_of_the_weights_as_are_allowed(eta):
    admission, begun, updates = Admission(0, eta), 0, 0
    for event, expected in STALENESS_GATE[eta]:
        if event == "submit":
            admitted = admission.may_begin(begun // 2 + 1, updates)
            assert admitted is expected
            begun += admitted
        elif event == "reject":
            begun -= 1
        else:
            updates += 1


def test_a_step_that_lacks_trees_has_room_or_something_in_flight():
    for extra in range(3):
        for missing in range(1, 5):
            for in_flight in range(6):
                flow = Flow(missing, in_flight)
                admission = Admission(extra, 0)
                assert admission.room(flow) + in_flight >= missing
                assert admission.enough(flow) is (in_flight == 0)


def test_settings_name_the_limits():
    plan = TrainingConfig(extra_trees=3, steps_ahead=2)
    assert Admission.of(plan) == Admission(3, 0)
    assert Admission.of(plan.model_copy(update={"overlap": True})) == Admission(3, 2)


@pytest.mark.parametrize(
    ("training", "words"),
    [
        ({"interrupt": True}, "training.interrupt = true with neither"),
        ({"steps_ahead": 2}, "training.steps_ahead = 2 with training.overlap = false"),
        (
            {"overlap": True, "steps_ahead": 2, "max_staleness": 1},
            "training.max_staleness = 1: nodes would be too old",
        ),
    ],
)
def test_a_limit_without_effect_is_refused_with_the_remedy(training, words):
    with pytest.raises(ConfigError, match=words):
        tiny_config("-", training=training, compute={"generators_per_agent": 1})
