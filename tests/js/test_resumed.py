"""Tests that page, run row and demo summary agree on which events a resume voids."""

import json

import msgspec
import pytest

from engine.events import vocabulary as ev
from tests.helpers.sample_log import Sample, sample_events
from webapp.telemetry.ingest.projections import project
from webapp.telemetry.ingest.rows import encode_row
from workers.demo.summary import DemoSummary

FRESH = {
    "state": "starting", "step": 0, "steps": 0, "waiting_name": "", "waiting_since": None,
    "waiting_deadline": None, "error": "", "result": {},
}  # fmt: skip
SAVED, LAST = 2, 5

pytestmark = pytest.mark.browser


def interrupted_log():
    """Killed within step 4, resumed from step 2's checkpoint with other draws, run to the end."""
    first = list(sample_events(Sample(seed=1, steps=LAST, trees=3, nodes=4)))
    again = list(sample_events(Sample(seed=2, steps=LAST, trees=3, nodes=4)))
    cut = index_of(first, "step.start", 4) + 20
    resumed = ev.Event(0, 0.0, "run.resumed", None, None, {"step": SAVED})
    log = [*first[:cut], resumed, *again[index_of(again, "step.start", SAVED + 1) :]]
    return renumbered(log)


def index_of(events, kind, step):
    return next(
        i for i, event in enumerate(events) if event.kind == kind and event.payload["step"] == step
    )


def renumbered(events):
    """The log of one run: seq from 1 up; a tree's id is the seq of its tree.open."""
    trees, log = {}, []
    for seq, event in enumerate(events, 1):
        if event.kind == "tree.open":
            trees[event.tree] = seq
        tree = event.tree and trees[event.tree]
        log.append(msgspec.structs.replace(event, seq=seq, time=1.76e9 + seq, tree=tree))
    return log


def on_the_wire(event):
    milliseconds, payload = int(event.time * 1000), json.dumps(event.payload)
    row = event.seq, milliseconds, event.kind, event.tree, event.node, payload
    return json.loads(encode_row(row))


def test_page_row_and_summary_count_the_same_steps(module_page):
    log = interrupted_log()
    demo_summary = DemoSummary()
    for event in log:
        demo_summary.add(event)
    shown = module_page.evaluate(
        """async (events) => {
            const { fold } = await import("/static/js/stream/fold.js");
            const state = fold(events);
            return { steps: state.steps, resumes: state.resumes, evaluations: state.evaluations };
        }""",
        [on_the_wire(event) for event in log],
    )
    report, row = demo_summary.report(), project(FRESH, log)
    assert [step["step"] for step in shown["steps"]] == list(range(1, LAST + 1))
    assert report["steps"] == row["step"] == LAST
    assert report["resumed_steps"] == 2 and shown["resumes"] == 1
    assert report["nodes"] == sum(step["nodes"] for step in shown["steps"]) == LAST * 3 * 4
    assert report["tokens"] - sum(e["tokens"] for e in shown["evaluations"]) == sum(
        step["tokens"] for step in shown["steps"]
    )
    last = shown["steps"][-1]
    assert row["result"]["reward"] == last["reward"]
    assert row["result"]["training_seconds"] == pytest.approx(last["training_seconds"])
    tested = [e for e in shown["evaluations"] if e["split"] == "test"]
    for agent, numbers in report["agents"].items():
        assert numbers["pass1_before"] == tested[0]["agents"][agent]
        assert numbers["pass1_after"] == tested[-1]["agents"][agent]
        assert row["result"]["test"]["latest"]["agents"][agent] == numbers["pass1_after"]
