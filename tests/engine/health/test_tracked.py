"""Tests of the rules over what other trainers log: each fault is found, no healthy run warns."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest

from engine.events.vocabulary import Event
from engine.health import RULES
from engine.health.logged_names import figures_in, settings_in, setup_of
from engine.health.tracked import State, TrackedMonitor
from tests.helpers.large import large_but
from tests.helpers.outside_runs import FAULTS, HEALTHY, Outside, trl
from webapp.client.tracking.trees import record_step

CASES = [(rule, name) for rule, by_name in FAULTS.items() for name in by_name]


def events_of(run: Outside) -> list[Event]:
    """The events of its log."""
    log: list[Event] = []

    def emit(kind, payload, tree=None, node=None):
        log.append(Event(len(log) + 1, 1_763_700_000.0 + len(log), kind, tree, node, dict(payload)))

    emit("run.state", {"state": "running", "reason": ""})
    emit("run.described", {"config": dict(run.config)})
    for step, row in run.rows:
        emit("metric.logged", {"step": step, "numbers": row})
    numbers = itertools.count(1)
    for step, trees in enumerate(run.trees, 1):
        record_step(emit, lambda: next(numbers), step, trees)
    emit("run.state", {"state": "finished", "reason": ""})
    return log


def found(events, monitor=None):
    monitor = monitor or TrackedMonitor()
    return [change for event in events for change in monitor.apply(event)]


def saved_and_loaded(monitor):
    state = msgspec.msgpack.encode(monitor.saved())
    return TrackedMonitor(msgspec.msgpack.decode(state, type=State))


@pytest.mark.parametrize(("rule", "name"), CASES)
def test_a_planted_fault_is_found(rule, name):
    changes = found(events_of(FAULTS[rule][name]))
    opened = {one.rule: one for one in changes if one.state.value == "opened"}
    assert rule in opened
    assert opened[rule].advice == RULES[rule].GENERAL_ADVICE
    assert opened.keys() - {rule} <= {"repeated_answers", "truncated_answers"}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_warns_of_nothing(name):
    assert found(events_of(HEALTHY[name])) == []


@pytest.mark.parametrize(("rule", "name"), large_but(CASES[::6], CASES))
def test_state_that_was_saved_and_loaded_finds_the_same(rule, name):
    events = events_of(FAULTS[rule][name])
    drawn = random.Random(rule + name)
    monitor, divided = TrackedMonitor(), []
    for event in events:
        divided += found([event], monitor)
        if drawn.random() < 0.03:
            monitor = saved_and_loaded(monitor)
    assert divided == found(events)


def test_a_warning_closes_when_its_fault_is_gone_and_is_opened_once():
    rows = [(step, trl(step, **({"gap": 0.5} if 20 < step < 30 else {}))) for step in range(1, 60)]
    changes = found(events_of(Outside(rows)))
    assert [(one.rule, one.state.value) for one in changes] == [
        ("mismatch", "opened"), ("mismatch", "closed")
    ]  # fmt: skip


def test_a_value_that_comes_late_changes_nothing():
    log = events_of(FAULTS["mismatch"]["TRL"])
    late = Event(0, 0.0, "metric.logged", None, None, {"step": 3, "numbers": trl(3, gap=9.0)})
    at = len(log) - 5
    assert found([*log[:at], late, *log[at:]]) == found(log)


def test_a_step_in_several_rows_is_one_step():
    log = events_of(FAULTS["equal_groups"]["TRL"])
    split = []
    for event in log:
        rows = event.payload.get("numbers", {})
        split += [
            msgspec.structs.replace(event, payload={**event.payload, "numbers": {name: value}})
            for name, value in rows.items()
        ] or [event]
    plain = [(one.rule, one.step) for one in found(log)]
    assert [(one.rule, one.step) for one in found(split)] == plain != []


def test_figures_of_several_data_sets_are_their_mean():
    row = {
        "val-core/a/acc/mean@8": 0.2,
        "val-core/b/acc/mean@8": 0.4,
        "val-core/a/acc/best@8/mean": 1,
    }
    assert figures_in(row) == {"validation": pytest.approx(0.3)}
    assert figures_in({"eval/math/all/solver/avg@4": 0.5}) == {"validation": 0.5}
    assert figures_in({"train/math/effective/solver/reward/mean": 0.5}) == {"reward": 0.5}
    assert figures_in({"eval/loss": 1.0, "loss": 2.0, "reward_std": 1.0}) == {}


def test_settings_say_whether_anything_can_clip():
    def clips(config):
        return setup_of(settings_in(config), "").clips

    assert clips({"num_iterations": 2}) and not clips({"num_iterations": 1})
    assert clips({"steps_per_generation": 8, "gradient_accumulation_steps": 4})
    assert not clips({"steps_per_generation": 4, "gradient_accumulation_steps": 4})
    actor = {"actor": {"ppo_mini_batch_size": 64, "ppo_epochs": 1, "grad_clip": 2.0}}
    nested = {"data": {"train_batch_size": 256}, "actor_rollout_ref": actor}
    assert clips(nested) and setup_of(settings_in(nested), "x").gradient_limits == {"x": 2.0}
    assert settings_in({"max_grad_norm": None, "num_iterations": "two", "data": [1]}) == {}
