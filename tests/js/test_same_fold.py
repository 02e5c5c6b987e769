"""Tests that the server's fold and the browser's fold produce the same JSON for every seq."""

import json

import msgspec
import pytest

from engine.events.vocabulary import Event, SearchAnswered
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.unwell_log import closed, opened, with_health
from tests.js.test_resumed import interrupted_log, on_the_wire
from webapp.telemetry.fold import fold

pytestmark = pytest.mark.browser

SHORT = 100
"""Logs of fewer events are compared at every event, longer ones at every 23rd."""
FOLDED = """async ([events, cuts]) => {
    const { asJson, emptyState, fold } = await import("/static/js/stream/fold.js");
    const state = emptyState();
    let from = 0;
    return cuts.map((to) => {
        fold(events.slice(from, to), state);
        from = to;
        return JSON.stringify(asJson(state));
    });
}"""


def searched_log():
    """A search that answers, is started again, and answers again."""
    whole = list(sample_events(Sample(seed=5, steps=1, trees=1, nodes=4)))
    kinds = ("run.state", "run.planned", "step.start", "tree.open", "node.open", "node.close")
    began = [event for event in whole if event.kind in (*kinds, "tree.close")]
    outcome = next(event for event in began if event.kind == "node.close")
    result = msgspec.to_builtins(
        SearchAnswered("pass", "oak", "latest", 1, 2, False, "nodes", 4, 40, 2.5)
    )
    answer = Event(0, outcome.time, result.pop("type"), outcome.tree, outcome.node, result)
    resumed = Event(0, outcome.time, "run.resumed", None, None, {"step": 0})
    log = [*began, answer, resumed, *began, answer]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(log, start=1)]


def logged_log():
    """Values that a program logged, more names than are kept, and a resume that voids some."""
    payloads = [
        {
            "step": step,
            "numbers": {"loss": 0.5},
            "texts": {"note": f"at {step}", f"n{step % 4}": "x"},
        }
        for step in range(20)
    ]
    table = {"columns": ["a"], "rows": [[1.5], [None]], "left_out": 3}
    histogram = {"edges": [0.0, 1.0], "counts": [2.0]}
    payloads[5] |= {"tables": {"t": table}, "histograms": {"h": histogram}}
    payloads[6] |= {"images": {"i": {"format": "png", "data": "AAAA"}}}
    payloads[9] |= {"nonfinite": {"loss": "nan"}}
    payloads += [{"step": 20, "texts": {f"many {index}": "x"}} for index in range(105)]
    log = [("metric.logged", payload) for payload in payloads]
    log.insert(15, ("run.resumed", {"step": 7}))
    return [
        Event(seq, 1_790_000_000.0 + seq, kind, None, None, payload)
        for seq, (kind, payload) in enumerate(log, start=1)
    ]


def cyclic_log():
    """A log that no engine of Grove writes: parents that are the node itself, each other, or
    unknown; nodes that are opened twice, and one that is opened as the root."""
    whole = list(sample_events(Sample(seed=6, steps=2, trees=2, nodes=6)))
    spoiled = []
    for event in whole:
        spoiled.append(event)
        if event.kind == "node.open":
            odd = {1: event.node, 2: 3, 3: 2, 4: 99}.get(event.node, event.payload["parent"])
            payload = {**event.payload, "parent": odd}
            spoiled[-1] = msgspec.structs.replace(event, payload=payload)
            if event.node == 5:
                again = {**payload, "parent": 5}
                spoiled += [
                    msgspec.structs.replace(event, node=node, payload=again) for node in (1, 0)
                ]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(spoiled, start=1)]


def unwell_log():
    """Warnings that open and close; the run is resumed before one closed and another opened."""
    whole = list(sample_events(Sample(seed=7, steps=4, trees=1, nodes=2, final=False)))
    log = with_health(
        whole,
        {
            1: [opened("mismatch", 1), opened("mismatch", 1, "fern")],
            2: [opened("slow_step", 2, agent=""), closed("mismatch", 2, "fern")],
            3: [
                closed("mismatch", 3),
                opened("idle_agent", 3, "fern"),
                closed("held_out_falls", 3),
            ],
            4: [opened("mismatch", 4, since=4)],
        },
    )
    resumed = [Event(0, log[-1].time, "run.resumed", None, None, {"step": step}) for step in (2, 1)]
    again = with_health(whole, {2: [closed("mismatch", 2)]})
    log = [*log, resumed[0], *again, resumed[1]]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(log, start=1)]


def short_log():
    """A short log with every kind of event of a run, compared at each event; an answer in it has
    pieces of two policy versions."""
    log = list(sample_events(Sample(seed=8, steps=2, trees=2, nodes=3, failure_share=0.2)))
    index = next(index for index, event in enumerate(log) if event.kind == "node.close")
    payload = {**log[index].payload, "pieces": [[0, 7], [1, 5]]}
    log[index] = msgspec.structs.replace(log[index], payload=payload)
    return log


def parts_log():
    """Rewards in parts, gates, and empty ones, which an external engine may send."""
    named = ({"parts": {"tests": 1.0, "format": 0.5}}, {"gates": {"format": 0.0}, "parts": {}}, {})
    return [
        msgspec.structs.replace(event, payload={**event.payload, **named[event.node % 3]})
        if event.kind == "node.credit"
        else event
        for event in short_log()
    ]


LOGS = {
    "whole": lambda: list(
        sample_events(Sample(seed=4, steps=4, trees=3, nodes=5, failure_share=0.1))
    ),
    "interrupted": interrupted_log,
    "searched": searched_log,
    "cyclic": cyclic_log,
    "unwell": unwell_log,
    "logged": logged_log,
    "short": short_log,
    "parts": parts_log,
}


@pytest.mark.parametrize("log", LOGS)
def test_the_server_and_the_browser_fold_alike_at_every_moment(module_page, log):
    events = LOGS[log]()
    assert log != "short" or len(events) < SHORT
    results = [on_the_wire(event) for event in events]
    cuts = (
        range(len(results) + 1)
        if len(results) < SHORT
        else [*range(0, len(results), 23), len(results)]
    )
    for cut, actual in zip(cuts, module_page.evaluate(FOLDED, [results, cuts]), strict=True):
        assert json.loads(actual) == fold(results[:cut]).as_json(), f"after {cut} events"


def test_no_path_up_a_folded_tree_has_a_cycle():
    trees = fold(map(on_the_wire, cyclic_log())).trees.values()
    assert trees
    for tree in trees:
        assert list(tree["nodes"]) == [1, 2, 3, 4, 5, 6]
        for at in tree["nodes"]:
            above = set()
            while at and at not in above:
                above.add(at)
                at = tree["nodes"][at]["parent"]
            assert at == 0


def test_a_resume_discards_warnings_and_opens_those_that_closed_after_it():
    log = [on_the_wire(event) for event in unwell_log()]
    cuts = [index for index, event in enumerate(log) if event[2] == "run.resumed"]

    def warnings(events):
        return [
            (one["rule"], one["agent"], one["closed"] and one["closed"]["step"])
            for one in fold(events).health
        ]

    assert warnings(log[: cuts[0]]) == [
        ("mismatch", "oak", 3), ("mismatch", "fern", 2), ("slow_step", "", None),
        ("idle_agent", "fern", None), ("mismatch", "oak", None),
    ]  # fmt: skip
    assert warnings(log[: cuts[0] + 1]) == [
        ("mismatch", "oak", None), ("mismatch", "fern", 2), ("slow_step", "", None),
    ]  # fmt: skip
    assert warnings(log) == [("mismatch", "oak", None), ("mismatch", "fern", None)]
