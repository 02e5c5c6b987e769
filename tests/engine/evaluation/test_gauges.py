"""Tests of gauges: their numbers, live and replayed and across resumes; a faulty one."""

import math
from types import SimpleNamespace

import msgspec
import pytest

from engine.config.evaluation import EvaluationConfig
from engine.evaluation.gauges import GAUGES
from engine.evaluation.gauges.fold import RunGauges, needs_of, replayed
from engine.evaluation.gauges.gauge import Gauge, gauge_of
from engine.events.log import EventLog, read_all
from engine.events.timeline import figures, surviving_events
from engine.events.vocabulary import KINDS, RunResumed, TreeOpened
from engine.events.watched_log import WatchedLog
from engine.rollout.recorder import TreeRecorder
from tests.helpers.sample_log import Sample, sample_events

ALL = EvaluationConfig(gauges=("support", "diversity", "success"), support={"steps": 2})
EVENTS = list(sample_events(Sample(steps=4, trees=3, nodes=4)))
TAGS = {tree: [f"tag-{tree % 3}", "any.of/them"] for tree in range(2000)}


def payload_of(event):
    payload = dict(event.payload)
    if event.kind == "tree.open":
        payload["tags"] = TAGS[event.tree]
    return msgspec.convert({"type": event.kind, **payload}, KINDS[event.kind])


def written(log, steps, first=1):
    """Appends the events of the steps `first` to `steps`, trees under their seq in this log."""
    at, trees = 0, {}
    for event in EVENTS:
        at = event.payload["step"] if event.kind == "step.start" else at
        if event.kind == "run.planned" or first <= at <= steps:
            if event.kind == "tree.open":
                trees[event.tree] = log.seq + 1
            log.append(payload_of(event), tree=trees.get(event.tree), node=event.node)


def log_of(folder, config=ALL):
    return WatchedLog(folder, {"gauges": lambda: RunGauges(config)} if config.gauges else {})


def gauged(folder):
    surviving = surviving_events(read_all(folder))
    return [event.payload for event in surviving if event.kind == "metric.logged"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    log = log_of(folder)
    written(log, 4)
    log.close()
    return folder


def test_a_step_has_one_event_with_the_numbers_of_all_gauges(whole):
    events = list(read_all(whole))
    ends = [event.seq for event in events if event.kind == "step.end"]
    assert [event.seq - 1 for event in events if event.kind == "metric.logged"] == ends
    numbers = gauged(whole)[-1]["numbers"]
    heads = {f"{name}.{figure}" for name in ALL.gauges for figure in GAUGES[name].figures}
    assert {".".join(name.split(".")[:2]) for name in numbers} == heads
    assert numbers["support.by.oak"] >= 0 and "success.tag.any.of/them" in numbers


def test_a_stored_log_gives_the_numbers_that_the_run_logged(whole):
    again = [msgspec.to_builtins(one) for one in replayed(read_all(whole), ALL)]
    assert [one | {"type": "metric.logged"} for one in gauged(whole)] == again


def test_gauges_change_no_other_event(whole, tmp_path):
    log = EventLog(tmp_path)
    written(log, 4)
    log.close()
    plain, with_gauges = figures(read_all(tmp_path)), figures(read_all(whole))
    assert [one for one in with_gauges if one[0] != "metric.logged"] == plain


@pytest.mark.parametrize(("killed", "saved"), [(3, 2), (2, 2), (3, 0)])
def test_a_resumed_run_logs_the_numbers_of_a_whole_one(whole, tmp_path, killed, saved):
    log = log_of(tmp_path)
    written(log, killed)
    log.close()
    log = log_of(tmp_path)
    log.append(RunResumed(saved))
    written(log, 4, first=saved + 1)
    log.close()
    assert gauged(tmp_path) == gauged(whole)


def test_a_number_that_was_not_finite_is_the_same_when_it_is_replayed(tmp_path):
    config = EvaluationConfig(gauges=("losses",))
    GAUGES["losses"] = Gauge(
        lambda step, _: {"loss": sum(one.loss for one in step.updates)}, {"loss": None}
    )
    try:
        log = log_of(tmp_path, config)
        for event in EVENTS:
            payload = payload_of(event)
            if event.kind == "agent.update" and event.payload["step"] == 2:
                payload = msgspec.structs.replace(payload, loss=math.nan)
            log.append(payload, tree=event.tree, node=event.node)
        log.close()
        live = gauged(tmp_path)
        assert [msgspec.to_builtins(one) for one in replayed(read_all(tmp_path), config)] == [
            {"type": "metric.logged", **one} for one in live
        ]
    finally:
        del GAUGES["losses"]
    assert live[1] == {"step": 2, "nonfinite": {"losses.loss": "nan"}}
    assert math.isfinite(live[0]["numbers"]["losses.loss"])


def tree(problem, *solvers, programs=(), difficulty=0, tags=(), agents=("oak", "fern")):
    nodes = [SimpleNamespace(agent=name, solves=name in solvers, closed=SimpleNamespace(program=""))
             for name in agents]  # fmt: skip
    nodes += [
        SimpleNamespace(agent=name, solves=False, closed=SimpleNamespace(program=text))
        for name, text in programs
    ]
    opened = TreeOpened(1, problem, "", difficulty, list(tags))
    return SimpleNamespace(opened=opened, nodes=nodes, closed=SimpleNamespace(solved=bool(solvers)))


def read(name, *steps, agents=("oak", "fern"), **options):
    """The numbers of a gauge after these steps, lists of trees, or None for a step without."""
    config = EvaluationConfig(gauges=(name,), **{name: options})
    gauge, chosen = GAUGES[name], config.options("gauges", name)
    state = gauge.state(chosen) if gauge.state else None
    context = SimpleNamespace(agents=agents, options=chosen, state=state)
    for number, trees in enumerate(steps, start=1):
        step = SimpleNamespace(ended=SimpleNamespace(step=number), trees=trees)
        numbers = gauge.numbers(step, context)
    return numbers


def test_support_says_who_solves_what_at_the_newest_visit_of_the_window():
    first = [tree("a", "oak"), tree("b", "oak", "fern"), tree("c"), tree("d", "fern")]
    numbers = read("support", first)
    assert numbers["solved"] == {"oak": 0.5, "fern": 0.5}
    assert numbers["by"] == {"oak": 0.25, "fern": 0.25, "several_agents": 0.25, "no_agent": 0.25}
    later = read("support", first, [tree("a"), tree("a", "fern")], [tree("c", "oak")], steps=2)
    assert later["by"] == {"oak": 0.5, "fern": 0.5, "several_agents": 0.0, "no_agent": 0.0}
    assert read("support", [tree("a", "oak", agents=("oak",))], agents=("oak",))["by"] == {
        "oak": 1.0, "no_agent": 0.0,
    }  # fmt: skip
    assert set(read("support", [])["by"].values()) == {None}, "a share of nothing"


def test_diversity_is_of_each_agent_and_of_the_team():
    same, other = "def solve(x):\n    return x", "def solve(x):\n    return x + 1"
    renamed = "def solve(y):\n    return y  # the same"
    programs = [("oak", same), ("oak", renamed), ("fern", other), ("fern", other), ("fern", same)]
    numbers = read("diversity", [tree("a", programs=programs), tree("b")], k=3)
    assert numbers["entropy"]["oak"] == 0.0
    assert numbers["entropy"]["fern"] == pytest.approx(math.log(3) - 2 / 3 * math.log(2))
    assert numbers["entropy"]["whole_team"] == pytest.approx(
        -(0.6 * math.log(0.6) + 0.4 * math.log(0.4))
    )
    assert numbers["distinct"] == {
        "oak": None, "fern": 2.0, "whole_team": pytest.approx(1.9),
    }  # fmt: skip
    assert set(read("diversity", [tree("a")], agents=("oak",))["entropy"]) == {"oak"}


def test_success_is_by_tag_and_difficulty_of_the_last_steps():
    steps = (
        [
            tree("a", "oak", difficulty=1, tags=["sort", "sort"]),
            tree("b", difficulty=2, tags=["dp"]),
        ],
        [tree("c", difficulty=1, tags=["sort", "dp"]), tree("d", "fern", difficulty=2, tags=["z"])],
    )
    assert read("success", *steps) == {
        "tag": {"dp": 0.0, "sort": 0.5, "z": 1.0}, "difficulty": {"1": 0.5, "2": 0.5},
    }  # fmt: skip
    assert read("success", *steps, most=2)["tag"] == {"dp": 0.0, "sort": 0.5}
    newest = read("success", *steps, [tree("e")], steps=1)
    assert newest == {"tag": {"dp": None, "sort": None, "z": None}, "difficulty": {}}


def test_only_a_gauge_that_needs_tags_has_them_in_the_log(tmp_path):
    assert needs_of(ALL) == {"tags"}
    assert not needs_of(EvaluationConfig()) | needs_of(EvaluationConfig(gauges=("support",)))
    problem = SimpleNamespace(id="p", statement="s", difficulty=2, tags=("sort",))
    log = EventLog(tmp_path)
    for with_tags in (False, True):
        recorder = TreeRecorder(log, 1, with_tags=with_tags)
        recorder.open_trees([SimpleNamespace(problem=problem)])
    log.close()
    without, tagged = (event.payload for event in read_all(tmp_path))
    assert tagged == without | {"tags": ["sort"]} and "tags" not in without


FAULTS = {
    "raises": (lambda step, _: 1 / 0, "ZeroDivisionError: division by zero"),
    "unnamed": (lambda step, _: {"other": 1.0}, "'other' is not in its FIGURES: one"),
    "wide": (lambda step, _: {"one": dict.fromkeys(map(str, range(65)), 1.0)}, "has 65 parts"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_gauge_that_fails_is_left_out_with_a_warning_and_the_run_goes_on(name, tmp_path):
    numbers, reason = FAULTS[name]
    GAUGES["faulty"] = Gauge(numbers, {"one": None})
    try:
        log = log_of(tmp_path, EvaluationConfig(gauges=("faulty", "diversity")))
        written(log, 2)
        log.close()
    finally:
        del GAUGES["faulty"]
    warnings = [e.payload for e in read_all(tmp_path) if e.kind == "log.line"]
    (warning,) = (one for one in warnings if one["level"] == "warning")
    assert warning["message"].startswith("evaluation.gauges: faulty failed and is left out")
    assert reason in warning["message"]
    assert [one["step"] for one in gauged(tmp_path)] == [1, 2], "the other goes on"


def test_a_module_that_is_no_gauge_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="has no function numbers"):
        gauge_of(SimpleNamespace(FIGURES={"one": None}))
    unknown = SimpleNamespace(numbers=print, FIGURES={"one": None}, NEEDS={"texts"})
    with pytest.raises(ValueError, match="NEEDS texts: only tags can be"):
        gauge_of(unknown)
