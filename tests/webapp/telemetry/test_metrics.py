"""Tests of metric series: what is stored of a log, and the values of buckets."""

import json
import math
import random
import uuid
from dataclasses import replace

import msgspec
import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from engine.events.vocabulary import Event
from tests.helpers.builders import a_held_run, an_event
from tests.helpers.sample_log import Sample, sample_events
from webapp.scalars import Scalars
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Block, Chunk, Clock, Gap, Metric
from webapp.telemetry.presentation import config_hash
from webapp.telemetry.series.as_of import metric_or_none, metrics_as_of
from webapp.telemetry.series.metrics import catch_up
from webapp.telemetry.series.reads import Axis, Range, Scale, buckets, metrics_of, points

SAMPLE = Sample(seed=5, steps=4, trees=3, nodes=5)


def updates(values, first=1, step=lambda index: index):
    """One update of oak for each value, from seq `first`."""
    return [
        an_event(first + index, "agent.update", agent="oak", step=step(index), loss=value)
        for index, value in enumerate(values)
    ]


def shipped(cast, events, size=5000):
    """A run that holds these events."""
    run, fencing = a_held_run(cast)
    for start in range(0, len(events), size):
        ingest(run.pk, fencing, events[start : start + size])
    run.refresh_from_db()
    return run, fencing


def all_points(run):
    points = []
    for name, *columns in (
        Block.objects.filter(metric__run=run)
        .order_by("metric__name", "index")
        .values_list("metric__name", "step", "tokens", "nodes", "value")
    ):
        points += [(name, *point) for point in zip(*columns, strict=True)]
    return points


def values_of(run, name):
    return [value for metric, *_, value in all_points(run) if metric == name]


def named(kind, payload):
    names, values, _ = Scalars().of(kind, payload)
    return dict(zip(names, values, strict=True))


def test_every_number_of_an_event_has_a_name():
    step = {"step": 3, "reward": 0.5, "tokens": 7, "phases": {"learn": 1.5}, "x": "text",
            "node_share": {"oak": 1}, "reward_by_agent": {"oak": 0.25}, "trees": 8,
            "filtered_trees": 2, "left": {"low_contrast": 6}, "rows": {"replay": 4}}  # fmt: skip
    assert named("step.end", step) == {
        "step.trees": 8, "step.filtered_trees": 2, "step.filtered_share": 0.25,
        "reward": 0.5, "step.tokens": 7, "phase.learn": 1.5, "share.oak": 1, "reward.oak": 0.25,
        "left.low_contrast": 6, "rows.replay": 4,
    }  # fmt: skip
    update = {"step": 3, "agent": "oak", "kl": 0.1, "loss": math.nan, "trees": [1], "new": 2}
    assert named("agent.update", update) == {"kl.oak": 0.1, "new.oak": 2}
    own = update | {
        "figures": {"dual_clipped": 0.5, "odd/name": 2, "no": "text"},
        "other": {"x": 1},
    }
    assert named("agent.update", own) == {
        "kl.oak": 0.1, "new.oak": 2, "figures.dual_clipped.oak": 0.5, "figures.odd_name.oak": 2,
    }  # fmt: skip
    evaluation = {"step": 3, "split": "test", "agents": {"oak": 0.5}, "tree": None, "problems": 9}
    assert named("eval.result", evaluation) == {"test.agent.oak": 0.5, "test.problems": 9}
    stated = {"agents": {"oak": 0.75}, "problems": 4, "tree": None, "samples": 1.0}
    families = evaluation | {"families": {"stated": stated, "damaged": 1}}
    assert named("eval.result", families) == named("eval.result", evaluation) | {
        "test.stated.agent.oak": 0.75, "test.stated.problems": 4, "test.stated.samples": 1.0,
    }  # fmt: skip
    assert named("system.sample", {"cpu_percent": 12.0}) == {"system.cpu_percent": 12.0}
    by_node = {"node_cpu_percent.node0": 5.0, "gpu_power_w.node1:3": 700.5}
    assert named("system.sample", {"memory_mb": 1.0, "by_node": by_node, "x": {"y": 1}}) == {
        "system.memory_mb": 1.0,
        "system.node_cpu_percent.node0": 5.0,
        "system.gpu_power_w.node1:3": 700.5,
    }
    assert not named("log.line", {"level": 1})


@pytest.mark.parametrize("size", [7, 10_000])
def test_batches_make_no_difference(cast, size):
    events = list(sample_events(SAMPLE))
    run, _ = shipped(cast, events, size)
    ends = [event.payload for event in events if event.kind == "step.end"]
    closed = [event.payload for event in events if event.kind == "node.close"]
    assert values_of(run, "reward") == [end["reward"] for end in ends]
    last = Metric.objects.get(run=run, name="reward")
    assert (last.points, last.step, last.nodes) == (4, 4, len(closed))
    assert last.tokens == sum(node["tokens"] for node in closed)
    assert values_of(run, "search.trees") == [3] * 4 and values_of(run, "search.nodes") == [5] * 4
    assert values_of(run, "within.5") == [end["solved"] for end in ends]


def node_events(first, node, verdict, *public, **more):
    """A node of tree 2, opened and closed, with the verdicts of its public tests."""
    opened = an_event(first, "node.open", tree=2, node=node, agent="oak", parent=0, depth=1)
    tests = [{"verdict": one, "input": "1", "expected": "2"} for one in public]
    closed = an_event(
        first + 1, "node.close", tree=2, node=node, program=f"p{node}", verdict=verdict, score=0.0,
        tests=tests, tokens=3, stop="end_of_text", **more,
    )  # fmt: skip
    return [opened, closed]


def test_programs_that_pass_the_public_and_fail_a_private_test_are_counted(cast):
    passed, wrong = "passed", "wrong_answer"
    events = [
        an_event(1, "step.start", step=1, trees=1),
        an_event(2, "tree.open", tree=2, step=1, problem="p", statement="s"),
        *node_events(3, 1, passed, passed, passed),
        *node_events(5, 2, "time_limit", passed, passed),
        *node_events(7, 3, wrong, passed, passed),
        *node_events(9, 4, wrong, passed, wrong),
        *node_events(11, 5, "no_program"),
        *node_events(13, 6, "sandbox_failure", passed),
        an_event(15, "tree.close", tree=2, nodes=6, solved=True, mean_score=0.2, filtered=False),
        an_event(16, "step.end", step=1, reward=0.2, solved=1.0, training_seconds=1.0),
    ]
    run, _ = shipped(cast, events)
    assert values_of(run, "search.hacking_nodes") == [2]
    assert values_of(run, "hacking.share") == [pytest.approx(2 / 5)]
    assert values_of(run, "hacking.of_public") == [pytest.approx(2 / 3)]


def test_answers_without_a_program_are_counted_by_reason(cast):
    events = [
        an_event(1, "step.start", step=1, trees=1),
        an_event(2, "tree.open", tree=2, step=1, problem="p", statement="s"),
        *node_events(3, 1, "passed", "passed"),
        *node_events(5, 2, "no_program", no_program="no_code"),
        *node_events(7, 3, "runtime_error", no_program="no_entry_point"),
        *node_events(9, 4, "no_program", no_program="no_code"),
        an_event(11, "tree.close", tree=2, nodes=4, solved=True, mean_score=0.2, filtered=False),
        an_event(12, "step.end", step=1, reward=0.2, solved=1.0, training_seconds=1.0),
    ]
    run, _ = shipped(cast, events)
    shares = {"no_code": 0.5, "does_not_parse": 0, "no_entry_point": 0.25, "cut_at_limit": 0}
    assert {r: values_of(run, f"no_program.{r}") for r in shares} == {
        reason: [share] for reason, share in shares.items()
    }
    assert not run.metrics.filter(name="no_program.no_answer").exists()


def test_what_an_endpoint_did_not_answer_is_counted_apart(cast):
    events = [
        an_event(1, "step.start", step=1, trees=1),
        an_event(2, "tree.open", tree=2, step=1, problem="p", statement="s"),
        *node_events(3, 1, "no_program", no_program="no_code"),
        *node_events(5, 2, "no_program", no_program="no_answer"),
        an_event(7, "tree.close", tree=2, nodes=2, solved=False, mean_score=0.0, filtered=False),
        an_event(8, "step.end", step=1, reward=0.0, solved=0.0, training_seconds=1.0),
    ]
    run, _ = shipped(cast, events)
    assert values_of(run, "no_program.no_answer") == values_of(run, "no_program.no_code") == [0.5]


def test_reward_hacking_is_absent_where_nothing_is_verified(cast):
    events = [
        an_event(1, "step.start", step=1, trees=1),
        an_event(2, "tree.open", tree=2, step=1, problem="p", statement="s"),
        *node_events(3, 1, "sandbox_failure"),
        an_event(5, "tree.close", tree=2, nodes=1, solved=False, mean_score=0.0, filtered=False),
        an_event(6, "step.end", step=1, reward=0.0, solved=0.0, training_seconds=1.0),
    ]
    run, _ = shipped(cast, events)
    assert values_of(run, "search.hacking_nodes") == [0]
    assert values_of(run, "hacking.share") == values_of(run, "hacking.of_public") == []


def test_an_old_log_gives_the_same_series(cast):
    run, _ = shipped(cast, list(sample_events(SAMPLE)))
    before = all_points(run)
    Clock.objects.all().delete()
    Metric.objects.all().delete()
    assert metrics_of(run).count() > 20
    assert all_points(run) == before
    catch_up(run.pk)
    assert all_points(run) == before


def gaps_of(run, name="loss.oak"):
    rows = Gap.objects.filter(metric__run=run, metric__name=name).order_by("position")
    return list(rows.values_list("position", "step"))


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_a_number_without_a_value_is_a_gap_between_two_points(cast, size):
    values = [None, 0.5, None, math.nan, 1.5, math.inf, None, 2.5, 3.5]
    run, fencing = shipped(cast, updates(values), size)
    assert values_of(run, "loss.oak") == [0.5, 1.5, 2.5, 3.5]
    # The first of several in a row; none before the first point.
    assert gaps_of(run) == [(1, 2), (2, 5)]
    metric = Metric.objects.get(run=run)
    assert buckets(metric, Range(points=7))["gaps"] == {"at": [1, 4], "x": [2, 5]}
    # Where a bucket has a point, its line goes on.
    assert buckets(metric, Range(points=2))["gaps"] == {"at": [], "x": []}
    assert buckets(metric, Range(points=7, until=5))["gaps"]["x"] == [2]
    assert buckets(metric, Range(first=4, last=8, points=7))["gaps"]["x"] == [5]
    ingest(run.pk, fencing, [an_event(10, "run.resumed", step=4)])
    assert values_of(run, "loss.oak") == [0.5, 1.5] and gaps_of(run) == [(1, 2)]
    ingest(run.pk, fencing, [an_event(11, "run.resumed", step=0)])
    assert not Gap.objects.exists()


def test_what_was_logged_as_not_finite_is_a_gap_and_a_text_is_none():
    logged = {"numbers": {"a": 1.0, "b": None}, "nonfinite": {"c/d": "nan"}, "texts": {"e": "x"}}
    names, _, missing = Scalars().of("metric.logged", logged)
    assert names == ("logged.a",) and set(missing) == {"logged.b", "logged.c~1d"}
    step = {"step": 1, "note": "text", "reward": 0.5, "entropy": None, "phases": {"learn": None}}
    names, _, missing = Scalars().of("step.end", step)
    assert names == ("reward",) and missing == ("step.entropy", "phase.learn")


def test_resent_events_are_counted_once(cast):
    events = updates([0.5] * 40)
    run, fencing = shipped(cast, events)
    ingest(run.pk, fencing, events)
    assert len(values_of(run, "loss.oak")) == 40


def test_a_resumed_run_forgets_what_it_does_again(cast):
    sample = an_event(102, "system.sample", cpu_percent=5.0)
    events = [*updates(range(1, 101), step=lambda index: index + 1), an_event(101), sample]
    run, fencing = shipped(cast, events)
    again = updates([-1.0] * 60, first=104, step=lambda index: index + 41)
    ingest(run.pk, fencing, [an_event(103, "run.resumed", step=40), *again])
    expected = [*range(1, 41), *[-1.0] * 60]
    assert values_of(run, "loss.oak") == expected and values_of(run, "system.cpu_percent") == [5.0]
    metric = Metric.objects.get(run=run, name="loss.oak")
    assert (metric.points, metric.step, metric.value) == (100, 100, -1.0)
    chunks = Chunk.objects.filter(metric=metric).order_by("index")
    sums = [sum(expected[start : start + 32]) for start in (0, 32, 64)]
    assert list(chunks.values_list("level", "index", "total")) == [
        (1, index, total) for index, total in enumerate(sums)
    ]
    told_now = buckets(metric, Range(points=10))["buckets"]
    assert sum(told_now["count"]) == 100


def test_a_resume_from_the_beginning_forgets_all(cast):
    run, fencing = shipped(cast, updates([1.0] * 5, step=lambda index: index + 1))
    ingest(run.pk, fencing, [an_event(6, "run.resumed", step=0)])
    assert all_points(run) == []


def test_the_state_at_an_event_covers_the_log_up_to_it(cast):
    """Resumes remove points, also all of a metric. At each event, the full log gives the same
    result as a run that holds the log only up to it."""
    after = [
        an_event(71, "system.sample", cpu_percent=5.0),
        an_event(72, "run.resumed", step=40),
        *updates([-1.0] * 60, first=73, step=lambda index: index + 41),
        an_event(133, "eval.result", step=90, split="test", agents={"oak": 0.5}),
        an_event(134, "run.resumed", step=0),
        *updates([7.0] * 5, first=135, step=lambda index: index + 1),
    ]
    events = [*updates(range(70), step=lambda index: index + 1), *after]
    # Evenly spaced: with an irregular clock, a whole chunk may lie within one bucket.
    events = [msgspec.structs.replace(one, time=1790000000.0 + one.seq) for one in events]
    whole, _ = shipped(cast, events)
    for until in (1, 31, 32, 33, 64, 70, 71, 72, 73, 100, 133, 134, 137, 139, 500):
        then, _ = shipped(cast, events[:until])
        stored = {one.name: one for one in metrics_of(then)}
        known = {one.name: one for one in metrics_as_of(whole, until)}
        assert known.keys() == stored.keys(), until
        for name, metric in stored.items():
            for column in ("points", "step", "time", "tokens", "nodes", "value"):
                assert getattr(known[name], column) == getattr(metric, column), (until, name)
            for axis, first in ((Axis.STEP, None), (Axis.TIME, None), (Axis.STEP, 20)):
                requested = Range(axis, first, None, 20)
                result = buckets(
                    metric_or_none(whole, name, until), replace(requested, until=until)
                )
                assert result == buckets(metric, requested), (until, name, axis)


@pytest.fixture
def long(cast):
    """(metric, its (step, value) pairs): 34,000 points, so that every level has a chunk."""
    chance = random.Random(7)
    values = [chance.gauss(0, 1) for _ in range(34_000)]
    run, _ = shipped(cast, updates(values, step=lambda index: index // 3), 10_000)
    metric = Metric.objects.get(run=run)
    return metric, [(index // 3, value) for index, value in enumerate(values)]


RANGES = ((None, None, 10), (None, None, 600), (17, 11_000, 50), (5000, 5003, 600),
          (100, 3000, 1), (-5, 10**9, 40), (20_000, 30_000, 20), (7, 7, 5))  # fmt: skip


def test_every_point_of_the_range_is_in_one_bucket(long):
    metric, pairs = long
    for scale in Scale:
        for first, last, expected in RANGES:
            check_range(metric, pairs, Range(Axis.STEP, first, last, expected, scale))
    for until in (1, 32, 1023, 1025, 32_768, 33_333, 34_000):
        for expected in (3, 600):
            check_moment(metric, pairs, until, expected)


def check_moment(metric, pairs, until, bucket_count):
    result = buckets(metric, Range(points=bucket_count, until=until))
    values = [value for _, value in pairs[:until]]
    assert result["points"] == until and result["to"] == pairs[until - 1][0]
    ends = (min(result["buckets"]["min"]), max(result["buckets"]["max"]))
    assert ends == (min(values), max(values)), until


def check_range(metric, pairs, window):
    result = buckets(metric, window)
    low, high = (result["from"], result["to"])
    inside = [(x, value) for x, value in pairs if low <= x <= high]
    bars = result["buckets"]
    assert result["points"] == sum(bars["count"]) == len(inside), window
    assert list(bars["at"]) == sorted(set(bars["at"])) and len(bars["at"]) <= window.points
    start = 0
    for at, x0, x1, least, most, mean, count in zip(*bars.values(), strict=True):
        part = inside[start : start + count]
        start += count
        values = [value for _, value in part]
        assert (x0, x1) == (part[0][0], part[-1][0]), window
        assert (least, most) == (min(values), max(values)), window
        assert mean == pytest.approx(sum(values) / count, abs=1e-9)
        assert 0 <= at < window.points
        if window.scale is Scale.LINEAR and high > low:
            # No bucket extends more than one width beyond its own end.
            assert x1 <= low + (at + 2) * (high - low) / window.points + 1e-9


def test_rows_read_grow_with_buckets_not_with_points(long):
    metric, _ = long
    with CaptureQueriesContext(connection) as requested:
        result = buckets(metric, Range(points=20))
    assert len(requested) <= 3 and result["points"] == 34_000
    query = requested[-1]["sql"]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT TEXT) {query}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan on telemetry_block" not in plan, plan


def test_points_come_in_pages_of_any_size(cast):
    run, fencing = shipped(cast, updates(range(75)))
    ingest(run.pk, fencing, updates(range(75, 90), first=76, step=lambda index: index + 75))
    metric = Metric.objects.get(run=run)
    for limit in (1, 31, 32, 33, 64, 89, 90, 100):
        found, cursor = [], None
        while True:
            names = ["position", "value", "step", "seq"]
            page = json.loads(points(metric, cursor, limit, names))
            found += zip(*page["points"].values(), strict=True)
            cursor = page["next"]
            if cursor is None:
                break
        assert found == [(at, at, at, at + 1) for at in range(90)], limit
    past_the_end = json.loads(points(metric, 89, 5, ["value"]))
    assert past_the_end == {"points": {"value": []}, "next": None}


def test_rest_returns_names_buckets_and_points(client, cast):
    run, _ = shipped(cast, updates([0.5, float("nan"), 1.5]))
    client.force_login(cast.vera)
    address = f"/api/v1/runs/{run.pk}/metrics"
    (metric,) = client.get(address).json()["metrics"]
    last = {"step": 2, "tokens": 0, "nodes": 0, "value": 1.5, "time": metric["last"]["time"]}
    assert metric == {"name": "loss.oak", "points": 2, "last": last}
    reply = client.get(f"{address}/loss.oak?points=2").json()
    assert (reply["from"], reply["to"], reply["points"]) == (0, 2, 2)
    assert reply["buckets"] == {
        "at": [0, 1], "from": [0, 2], "to": [0, 2], "min": [0.5, 1.5], "max": [0.5, 1.5],
        "mean": [0.5, 1.5], "count": [1, 1],
    }  # fmt: skip
    assert reply["gaps"] == {"at": [], "x": []}
    assert client.get(f"{address}/loss.oak?points=3").json()["gaps"] == {"at": [1], "x": [1]}
    raw = client.get(f"{address}/loss.oak/points?limit=1").json()
    assert raw["points"]["value"] == [0.5] and raw["next"] == 0
    raw = client.get(f"{address}/loss.oak/points?limit=1&cursor=0&fields=step,value").json()
    assert raw == {"points": {"step": [2], "value": [1.5]}, "next": None}
    unknown = client.get(f"{address}/loss.oak/points?fields=step,loss")
    assert unknown.status_code == 422 and unknown.json()["problems"][0]["value"] == "loss"
    assert client.get(f"{address}/loss.elm").status_code == 404
    (then,) = client.get(f"{address}?until=2").json()["metrics"]
    assert (then["points"], then["last"]["value"]) == (1, 0.5)
    assert client.get(f"{address}/loss.oak?until=2").json()["points"] == 1
    wrong = client.get(f"{address}/loss.oak?from=3&to=1")
    assert wrong.status_code == 422 and wrong.json()["problems"][0]["path"] == "from"


def test_the_page_of_charts_is_of_runs_that_one_may_see(client, cast):
    run, other = a_held_run(cast)[0], a_held_run(cast)[0]
    client.force_login(cast.vera)
    response = client.get(f"/charts/?run={other.pk}&run={run.pk}")
    assert response.context["runs"] == [other, run]
    listed = response.context["page"]["runs"]
    assert listed[0]["group"] == listed[1]["group"] and listed[0]["agents"] == ["oak", "fern"]
    assert client.get("/charts/").status_code == 200
    for wrong in ("run=x", "&".join(f"run={uuid.uuid4()}" for _ in range(21))):
        assert client.get(f"/charts/?{wrong}").status_code == 400
    client.force_login(cast.charlie)
    assert client.get(f"/charts/?run={run.pk}").status_code == 404


def test_a_group_holds_runs_that_differ_only_by_seed():
    assert config_hash({"seed": 1, "a": [1]}) == config_hash({"a": [1], "seed": 2})
    assert config_hash({"seed": 1, "a": [1]}) != config_hash({"seed": 1, "a": [2]})


def test_steps_report_their_phases_and_waits(client, cast):
    def event(seq, time, kind, **payload):
        if kind == "step.end":
            payload |= {"solved": 0.5, "reward": 0.5, "training_seconds": 1.0}
        return Event(seq, time, kind, None, None, payload)

    events = [
        event(1, 100.0, "run.waiting", name="sandbox", deadline_seconds=9),
        event(2, 101.5, "run.waiting", name="weights", deadline_seconds=9),
        event(3, 104.0, "run.waiting", name="", deadline_seconds=0),
        event(4, 105.0, "step.end", step=1, seconds=5.0, phases={"learn": 1.0}),
        event(5, 106.0, "step.end", step=2, seconds=1.0, phases={}),
        event(6, 107.0, "run.waiting", name="sandbox", deadline_seconds=9),
        event(7, 109.0, "step.end", step=3, seconds=3.0, phases={}),
    ]
    run, _ = shipped(cast, events)
    client.force_login(cast.vera)
    address = f"/api/v1/runs/{run.pk}/steps"
    newest = client.get(f"{address}?limit=2").json()
    assert [(one["step"], one["waits"]) for one in newest["steps"]] == [(3, {}), (2, {})]
    oldest = client.get(f"{address}?limit=2&cursor={newest['next']}").json()
    assert oldest["next"] is None and oldest["steps"] == [
        {"seq": 4, "step": 1, "seconds": 5.0, "phases": {"learn": 1.0},
         "waits": {"sandbox": 1.5, "weights": 2.5}}
    ]  # fmt: skip


def test_log_lines_are_filtered_by_level_and_words_and_paged(client, cast):
    said = [("info", "one"), ("error", "Two 100%"), ("warning", "two"), ("info", "three")]
    events = [
        an_event(seq, level=level, message=message)
        for seq, (level, message) in enumerate(said, start=1)
    ]
    run, _ = shipped(cast, events)
    client.force_login(cast.vera)

    def seqs(query):
        body = client.get(f"/api/v1/runs/{run.pk}/logs?{query}").json()
        return [line["seq"] for line in body["lines"]], body["next"]

    assert seqs("") == ([4, 3, 2, 1], None) and seqs("limit=3") == ([4, 3, 2], 2)
    assert seqs("limit=3&cursor=2") == ([1], None)
    assert seqs("q=TWO") == ([3, 2], None) and seqs("q=0%25") == ([2], None)
    assert seqs("level=error&level=warning") == ([3, 2], None)
    assert client.get(f"/runs/{run.pk}/log/").status_code == 200


@pytest.mark.parametrize(
    "said",
    [
        "INSERT INTO telemetry_chunk (metric_id, level, index, least, most, total, step_from,"
        " step_to, time_from, time_to, tokens_from, tokens_to, nodes_from, nodes_to)"
        " VALUES (-1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
        "UPDATE telemetry_block SET metric_id = -1",
        "DELETE FROM telemetry_metric",
    ],
)
def test_the_database_keeps_blocks_and_chunks_with_their_metric(cast, said):
    shipped(cast, updates([0.5] * 40))
    with (
        pytest.raises(IntegrityError, match="metric"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(said)
    assert Block.objects.count() > Chunk.objects.count() > 0


def test_numbers_that_come_and_go_keep_the_order_of_their_events(cast):
    """An engine may report other metrics in other steps, and two whose names become equal."""
    phases = [{"learn": 1.0}, {"learn": 2.0, "sync": 5.0, "a/b": 1.0, "a_b": 2.0}, {"learn": 3.0}]
    events = [
        an_event(index + 1, "step.end", step=index, phases=phases[index % 3],
                 **dict.fromkeys(("reward", "solved", "training_seconds"), 0.0))
        for index in range(90)
    ]  # fmt: skip
    run, _ = shipped(cast, events)
    assert values_of(run, "phase.learn") == [1.0, 2.0, 3.0] * 30
    assert values_of(run, "phase.sync") == [5.0] * 30
    assert values_of(run, "phase.a_b") == [1.0, 2.0] * 30
    halves, _ = shipped(cast, events, 45)
    assert all_points(halves) == all_points(run)
