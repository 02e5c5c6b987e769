"""Tests of the demo's summary: sums over surviving steps, first and last test result."""

from __future__ import annotations

import msgspec
import pytest

from engine.events import vocabulary as ev
from workers.demo.summary import DemoSummary


def report_of(*payloads):
    """The report of a `DemoSummary` of payloads, or of (payload, tree, node)."""
    demo_summary = DemoSummary()
    for seq, item in enumerate(payloads, start=1):
        payload, tree, node = item if isinstance(item, tuple) else (item, None, None)
        body = msgspec.to_builtins(payload)
        demo_summary.add(ev.Event(seq, 0.0, body.pop("type"), tree, node, body))
    return demo_summary.report()


def a_step(step, tree, nodes=2, end=True):
    """Events of a step with one tree."""
    opened = ev.TreeOpened(step=step, problem="p", statement="s")
    closed = ev.NodeClosed(
        program="", verdict=ev.Verdict.PASSED, score=1.0, fraction=1.0, tests=[], tokens=5,
        stop=ev.StopReason.END_OF_TEXT, mean_logprob=0.0, policy_version=0, seconds=0.0,
    )  # fmt: skip
    ended = ev.StepEnded(
        step=step, seconds=1, phases={}, nodes=nodes, reward=0, solved=0, node_share={},
        reward_by_agent={}, filtered_trees=0, dropped_nodes=0, tokens=5 * nodes,
        training_seconds=2.0 * step,
    )  # fmt: skip
    events = [ev.StepStarted(step=step, trees=1), (opened, tree, None)]
    events += [(closed, tree, node) for node in range(1, nodes + 1)]
    return [*events, ended] if end else events


def a_test(step, oak, **more):
    return ev.EvaluationResult(
        step=step, split="test", agents={"oak": oak}, standard_errors={"oak": 0.01},
        problems=300, rollouts=10, tokens=100, **more,
    )  # fmt: skip


def test_steps_trees_nodes_and_tokens_are_summed_with_those_of_evaluation():
    report = report_of(a_test(0, 0.2), *a_step(1, 10), *a_step(2, 20, nodes=3))
    assert (report["steps"], report["trees"], report["nodes"]) == (2, 2, 5)
    assert report["rollouts"] == 15 and report["tokens"] == 125
    assert report["training_seconds"] == 4.0


def test_steps_voided_by_a_resume_are_counted_once_as_repeated():
    again = ev.RunResumed(step=1)
    report = report_of(
        *a_step(1, 10), *a_step(2, 20), *a_step(3, 30, end=False), again, *a_step(2, 40)
    )
    assert report["resumed_steps"] == 2
    assert (report["steps"], report["trees"], report["nodes"]) == (2, 2, 4)


def test_the_first_and_the_last_test_result_are_before_and_after():
    report = report_of(
        a_test(0, 0.2, tree=0.3, samples=0.35),
        *a_step(1, 10),
        a_test(1, 0.6, tree=0.8, samples=0.7),
    )
    assert report["agents"] == {
        "oak": {"pass1_before": 0.2, "pass1_after": 0.6, "pass1_se": 0.01, "problems": 300}
    }
    assert report["team"] == {
        "tree8_before": 0.3, "tree8_after": 0.8, "samples8_before": 0.35, "samples8_after": 0.7,
    }  # fmt: skip


def test_of_several_families_the_figures_are_those_of_fully_stated_problems():
    def by_family(stated, underspecified):
        return {
            name: ev.FamilyFigures(9, {"oak": value}, {"oak": 0.02}, tree=value + 0.1)
            for name, value in (("stated", stated), ("underspecified", underspecified))
        }

    report = report_of(
        a_test(0, 0.2, families=by_family(0.3, 0.1)),
        *a_step(1, 10),
        a_test(1, 0.6, families=by_family(0.8, 0.2)),
    )
    stated = {"pass1_before": 0.3, "pass1_after": 0.8, "pass1_se": 0.02, "problems": 9}
    assert report["agents"] == {"oak": stated} == report["families"]["stated"]["agents"]
    assert report["team"]["tree8_after"] == pytest.approx(0.9)
    assert report["families"]["underspecified"]["agents"]["oak"]["pass1_after"] == 0.2
    assert report_of(a_test(0, 0.2))["families"] == {}


def test_a_run_that_never_came_to_its_last_test_has_no_after():
    report = report_of(a_test(0, 0.2), *a_step(1, 10))
    assert report["agents"]["oak"]["pass1_after"] is None
    assert report_of()["agents"] == {}


def test_validation_is_not_taken_for_the_test_split():
    validated = ev.EvaluationResult(
        step=1, split="validation", agents={"oak": 0.9}, standard_errors={"oak": 0.1}, problems=10
    )
    assert report_of(a_test(0, 0.2), validated)["agents"]["oak"]["pass1_after"] is None
