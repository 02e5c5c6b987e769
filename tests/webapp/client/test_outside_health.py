"""Tests of the health of runs that other programs log: what the real client sends to the real
server becomes an event, a warning of the run and an alert, each once."""

from __future__ import annotations

import random
import uuid

import msgspec
import pytest

import grove
from tests.engine.health.test_tracked import CASES, events_of, found
from tests.helpers.alerts import a_rule, inbox_titles
from tests.helpers.builders import a_cast
from tests.helpers.large import large_but
from tests.helpers.outside_runs import FAULTS, HEALTHY
from tests.webapp.client.conftest import tracked
from webapp.alerts.models import RuleKind
from webapp.client.tracking.trees import record_step
from webapp.experiments.tracked_runs import Process, Resume, attach, head_of
from webapp.telemetry.ingest.external_engines import Gap, read_batch, store_batch
from webapp.telemetry.models import Event, TrackedHealth
from webapp.telemetry.selectors import folded

pytestmark = pytest.mark.django_db(transaction=True)


def send(outside, name):
    """Logs the whole run with the client; returns it as stored."""
    run = grove.init(project="Oaks", id=name, config=dict(outside.config))
    for step, row in outside.rows:
        run.log(row, step=step)
    for step, trees in enumerate(outside.trees, 1):
        record_step(run.emit, run.new_tree, step, trees)
    run.finish()
    return tracked(name)


def warnings_of(run):
    return [
        (one.payload["rule"], one.payload["state"], one.payload["step"])
        for one in Event.objects.filter(run=run, kind="health").order_by("seq")
    ]


def seqs_are_whole(run):
    seqs = Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True)
    return list(seqs) == list(range(1, run.head_seq + 1))


@pytest.mark.parametrize(("rule", "name"), large_but([CASES[0]], CASES))
def test_a_fault_becomes_an_event_a_warning_and_an_alert(here, rule, name):
    a_rule(here.cast.bob, here.cast.project, RuleKind.HEALTH, health=[rule])
    outside = FAULTS[rule][name]
    run = send(outside, "unwell")
    expected = [(one.rule, one.state.value, one.step) for one in found(events_of(outside))]
    assert warnings_of(run) == expected and rule in {one[0] for one in expected}
    shown = [(one["rule"], one["step"]) for one in run.result["health"]]
    assert shown == [(one[0], one[2]) for one in expected if one[1] == "opened"]
    assert rule in {one["rule"] for one in folded(run)["health"]}
    assert len(inbox_titles(here.cast.bob)) == [one[:2] for one in expected].count((rule, "opened"))
    assert seqs_are_whole(run) and run.state == "finished"
    last = Event.objects.filter(run=run).order_by("seq").last()
    assert last.kind == "run.state"


@pytest.mark.parametrize("name", large_but(["TRL"], list(HEALTHY)))
def test_a_healthy_run_of_another_trainer_raises_none(here, name):
    a_rule(here.cast.bob, here.cast.project, RuleKind.HEALTH)
    run = send(HEALTHY[name], "well")
    assert warnings_of(run) == [] and inbox_titles(here.cast.bob) == []
    assert "health" not in run.result


@pytest.mark.large
def test_a_run_that_is_resumed_by_another_process_is_warned_of_once(here):
    rows = FAULTS["entropy_collapse"]["TRL"].rows
    for part in (rows[:35], rows[35:]):
        with grove.init(project="Oaks", id="twice", resume="allow") as run:
            for step, row in part:
                run.log(row, step=step)
    run = tracked("twice")
    assert [one[:2] for one in warnings_of(run)] == [("entropy_collapse", "opened")]
    assert seqs_are_whole(run)
    assert Event.objects.filter(run=run, kind="metric.logged").count() == len(rows)


def lines_of(outside):
    """The lines of its process: events without a seq."""
    lines = []
    for event in events_of(outside):
        line = msgspec.to_builtins(event)
        lines.append({key: line[key] for key in ("time", "kind", "tree", "node", "payload")})
    return lines


def post(run, session, base, lines, first, last):
    """Sends lines `first` to `last`, as the client numbers them."""
    events = [{"seq": base + n, **lines[n - 1]} for n in range(first, last + 1)]
    body = msgspec.json.encode({"session": str(session), "events": events})
    return store_batch(run.pk, read_batch(body))


@pytest.mark.parametrize("seed", [1, 2])
def test_batches_that_are_sent_again_neither_lose_nor_double_anything(var_directory, seed):
    outside, drawn, session = FAULTS["mismatch"]["TRL"], random.Random(seed), uuid.uuid4()
    lines, cast = lines_of(outside), a_cast()
    process = Process(session, "", len(lines))
    attached = attach(cast.project, cast.bob, "again", Resume.NEVER, process)
    run, done = attached.run, 0
    while done < len(lines):
        first = max(1, done + 1 - drawn.randrange(6))
        last = min(len(lines), done + drawn.randrange(1, 9))
        run = post(run, session, attached.base, lines, first, last)
        done = max(done, last)
        if done + 1 < len(lines):
            with pytest.raises(Gap) as gap:
                post(run, session, attached.base, lines, done + 2, done + 2)
            assert gap.value.expected == attached.base + done + 1
        assert head_of(run) == attached.base + done
        assert attach(cast.project, cast.bob, "again", Resume.NEVER, process).lines == done
    expected = [(one.rule, one.state.value, one.step) for one in found(events_of(outside))]
    assert warnings_of(run) == expected != []
    assert seqs_are_whole(run) and run.head_seq == len(lines) + len(expected)


def test_a_state_that_cannot_be_read_costs_no_event(var_directory, caplog):
    lines, cast, session = lines_of(FAULTS["mismatch"]["TRL"]), a_cast(), uuid.uuid4()
    run = attach(cast.project, cast.bob, "torn", Resume.NEVER, Process(session, "", 9)).run
    post(run, session, 0, lines, 1, 5)
    TrackedHealth.objects.filter(run=run).update(state=b"torn")
    assert post(run, session, 0, lines, 6, len(lines)).head_seq == len(lines)
    assert "was not judged" in caplog.text
