"""Tests of when warnings open and close, and of the log that a resume has cut."""

import re
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest

from engine.config.schema import RunConfig
from engine.events.log import read_all
from engine.events.states import HealthState
from engine.events.timeline import figures, surviving_events
from engine.events.vocabulary import RunResumed
from engine.events.watched_log import WatchedLog
from engine.health import RULES
from engine.health.monitor import CALM, Monitor
from engine.health.setup import Setup
from engine.recipes import load_recipe
from tests.engine.health.planted import Step, Writer, changes, equal_trees, payloads, planned
from tests.helpers.large import large_but

SETUP = Setup(clips=True)
SETTING = re.compile(r"\b(?:optimizer|loss|credit|search|training|sampling|compute)\.[a-z_.]+[a-z]")
BAD = Step().with_all(mismatch=0.4)
GOOD = Step()


def states(some):
    return [(one.rule, one.agent, one.state.value, one.step) for one in some]


def test_a_warning_closes_after_calm_steps_and_may_open_again():
    steps = [GOOD] * 10 + [BAD] * 6 + [GOOD] * 20 + [BAD] * 6
    oak = [one for one in changes(steps, SETUP) if one.agent == "oak"]
    first, closed, second = oak
    assert [one.state.value for one in oak] == ["opened", "closed", "opened"]
    # 6 bad of 0.4 leave a mean of 5 above 0.1 for four more steps.
    assert closed.step == 16 + 3 + CALM and closed.since == first.since
    assert second.since > closed.step
    assert not closed.advice and str(CALM) in closed.seen


@pytest.mark.large
def test_a_value_that_flickers_opens_one_warning():
    spike, usual = Step().with_all(gradient_norm=50.0), Step()
    steps = [usual] * 25 + [spike, *[usual] * (CALM - 1)] * 4
    assert {one.state for one in changes(steps, SETUP)} == {HealthState.OPENED}
    assert len(changes(steps, SETUP)) == 2  # one per agent


class Breaking:
    TITLE, ADVICE = "Breaking", ""

    def find(self, history):
        raise ZeroDivisionError


def test_a_rule_that_fails_is_off_and_the_others_go_on(caplog):
    rules = {"breaking": Breaking(), "mismatch": RULES["mismatch"]}
    monitor, writer = Monitor(SETUP, rules), Writer()
    opened = []
    for number in range(1, 9):
        for payload, tree, node in payloads(number, BAD, 100 * number):
            monitor.apply(writer.event(payload, tree, node))
        opened += monitor.after_step() if number >= 8 or number < 3 else []
    assert {one.rule for one in opened} == {"mismatch"}
    assert [record.message for record in caplog.records] == [
        "health rule breaking fails; it is off"
    ]


def faulty(number):
    """Steps with faults that open, close, and last over every possible cut."""
    if number in range(6, 14) or number > 30:
        return replace(BAD, trees=equal_trees(number, 0.0)) if number % 2 else BAD
    return Step().with_all(gradient_norm=60.0) if number == 27 else GOOD


def write(log, first, last, part=None):
    """Writes whole steps, and `part` events of the one after."""
    for number in range(first, last + 1):
        for payload, tree, node in payloads(number, faulty(number), 100 * number):
            log.append(payload, tree=tree, node=node)
    if part:
        for payload, tree, node in list(payloads(last + 1, faulty(last + 1), 1))[:part]:
            log.append(payload, tree=tree, node=node)


def monitored(folder):
    return WatchedLog(folder, {"health": lambda: Monitor(SETUP)})


def health_of(folder):
    surviving = surviving_events(read_all(folder))
    # Times are those of the clock.
    return [{**event.payload, "since_time": 0} for event in surviving if event.kind == "health"]


def logged(folder, *cuts):
    """The health of a run of 36 steps that was killed at each (step, events after it) and resumed
    from a checkpoint some steps before."""
    folder.mkdir()
    first = 1
    for step, part, saved in cuts:
        log = monitored(folder)
        if first > 1:
            log.append(RunResumed(first - 1))
        log.append(planned())
        write(log, first, step, part)
        log.close()
        first = saved + 1
    log = monitored(folder)
    if cuts:
        log.append(RunResumed(first - 1))
    log.append(planned())
    write(log, first, 36)
    log.close()
    return health_of(folder)


CUTS = [
    [(14, 7, 10), (28, 500, 20), (33, 0, 33)],
    [(9, 40, 9)],  # killed within a step
    [(12, 0, 8)],  # the warning opened after the checkpoint: it opens again, once
    [(26, 3, 15)],  # it closed after the checkpoint
    [(20, 0, 0)],  # no checkpoint: all over again
]


@pytest.mark.parametrize("cuts", large_but(CUTS[:1], CUTS))
def test_a_resumed_run_repeats_no_warning_and_misses_none(tmp_path, cuts):
    whole = logged(tmp_path / "whole")
    assert {one["rule"] for one in whole} >= {"mismatch", "gradient_spike"}
    assert {one["state"] for one in whole} == {"opened", "closed"}
    assert logged(tmp_path / "cut", *cuts) == whole


@pytest.mark.large
def test_a_warning_follows_the_end_of_its_step_in_the_log(tmp_path):
    logged(tmp_path / "run")
    events = list(read_all(tmp_path / "run"))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    for before, event in pairwise(events):
        if event.kind == "health":
            assert before.kind in ("step.end", "health")
            assert event.payload["step"] == before.payload["step"]


@pytest.mark.large
def test_health_is_no_result_of_a_run(tmp_path):
    logged(tmp_path / "run")
    events = list(read_all(tmp_path / "run"))
    without = [event for event in events if event.kind != "health"]
    assert len(without) < len(events)
    assert figures(events) == figures(without)


def test_a_log_of_a_version_without_health_goes_on_with_it(tmp_path):
    logged(tmp_path / "run")
    path = tmp_path / "run" / "events.jsonl"
    old = [event for event in read_all(tmp_path / "run") if event.kind != "health"]
    lines = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(old, start=1)]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    log = monitored(tmp_path / "run")
    log.append(RunResumed(36))
    write(log, 37, 37)
    log.close()
    assert [(one["rule"], one["step"]) for one in health_of(tmp_path / "run")] == [
        ("mismatch", 37), ("mismatch", 37),
    ]  # fmt: skip


def test_an_event_that_cannot_be_read_ends_the_watch_and_not_the_run(tmp_path, caplog):
    """An earlier version may have written others."""
    log = monitored(tmp_path)
    log.append(planned())
    write(log, 1, 7)
    log.close()
    path = tmp_path / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"advantage"', b'"benefit"'))
    log = monitored(tmp_path)
    log.append(RunResumed(7))
    write(log, 8, 20)
    log.close()
    assert "is no longer watched" in caplog.text
    events = list(read_all(tmp_path))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].payload["step"] == 20
    assert all(event.payload["step"] <= 7 for event in events if event.kind == "health")


@pytest.mark.parametrize("name", RULES)
def test_the_settings_of_an_advice_exist(name):
    known = set(_paths(load_recipe("demo").model_dump(mode="json")))
    named = SETTING.findall(RULES[name].ADVICE + (RULES[name].__doc__ or ""))
    assert all(one in known for one in named), set(named) - known


def test_some_advice_names_settings():
    assert sum("optimizer.learning_rate" in rule.ADVICE for rule in RULES.values()) > 3


def _paths(value, path=""):
    """Dotted paths of the settings; those of an agent begin with its section."""
    for key, item in value.items():
        here = f"{path}.{key}".lstrip(".")
        yield here
        if isinstance(item, dict):
            yield from _paths(item, here)
        if key == "agents":
            yield from _paths(item[0])


@pytest.mark.parametrize(
    ("overrides", "clips"),
    [
        ({}, False),
        ({"training.minibatches": 4}, True),
        ({"training.minibatches": 4, "loss.clip_low": 1.0, "loss.clip_high": 1.5}, False),
    ],
)
def test_the_setup_says_whether_an_update_can_clip(overrides, clips):
    config: RunConfig = load_recipe("demo", overrides)
    setup = Setup.of(config)
    assert setup.clips is clips
    assert setup.gradient_limits == {"oak": 1.0, "fern": 1.0}
