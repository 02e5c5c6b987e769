"""Tests of `metric.logged`: what is refused, whatever is sent, and what is stored and shown."""

import json

import pytest

from tests.helpers.builders import a_held_run, an_event
from tests.webapp.experiments.test_external_engines import Engine, line
from webapp.experiments.models import Run
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Event, LoggedName, Metric
from webapp.telemetry.selectors import folded, state
from webapp.telemetry.series.metrics import catch_up
from webapp.telemetry.stream.view import View


@pytest.fixture
def engine(client, cast):
    return Engine(client, cast)


def logged(seq, step=1, **payload):
    return line(seq, "metric.logged", step=step, **payload)


def refusal(response):
    assert response.status_code == 422, response.content
    (one,) = response.json()["problems"]
    return one["path"], one["reason"]


@pytest.mark.parametrize(
    ("payload", "path", "reason"),
    [
        ({"numbers": {"": 1}}, "numbers", "give a name of 1 to 180"),
        ({"numbers": {"n" * 181: 1}}, "numbers", "give a name of 1 to 180"),
        ({"numbers": {"/" * 100: 1}}, "numbers", "count twice"),
        ({"numbers": {"a\u202eb": 1}}, "numbers", "printable"),
        ({"texts": {"a\0b": "x"}}, "texts", "printable"),
        ({"texts": {"a\\b": "x"}}, "texts", "backslashes"),
        ({"numbers": {str(n): n for n in range(2001)}}, "numbers", "at most 2000 numbers"),
        ({"numbers": {"a": 1e300}}, "numbers.a", "below 1e+300"),
        ({"numbers": {"a": "1"}}, "", "Expected `float`"),
        ({"numbers": {"a": None}}, "", "Expected `float`, got `null`"),
        ({"nonfinite": {"a": "huge"}}, "", "Invalid enum value"),
        ({"texts": {"a": "x" * 65_537}}, "texts.a", "at most 65536 characters"),
        ({"texts": {str(n): "x" * 60_000 for n in range(9)}}, "", "at most 524288 bytes"),
        ({"tables": {"t": {"columns": [], "rows": []}}}, "tables.t.columns", "1 to 100 columns"),
        ({"tables": {"t": {"columns": ["a"], "rows": [[1, 2]]}}}, "tables.t.rows.0", "as many"),
        ({"tables": {"t": {"columns": ["a"], "rows": [[0]] * 10_001}}}, "tables.t.rows", "10000"),
        ({"tables": {"t": {"columns": ["a"], "rows": [["x" * 4097]]}}}, "tables.t", "4096"),
        ({"tables": {"t": {"columns": ["a"], "rows": [[{}]]}}}, "", "Expected `bool | float"),
        ({"histograms": {"h": {"edges": [0, 1], "counts": []}}}, "histograms.h", "one edge more"),
        ({"histograms": {"h": {"edges": [1, 0], "counts": [1]}}}, "histograms.h.edges", "order"),
        ({"histograms": {"h": {"edges": [0, 1], "counts": [-1]}}}, "histograms.h", "at least 0"),
        ({"images": {"i": {"format": "png", "data": "?"}}}, "images.i.data", "base64"),
        ({"images": {"i": {"format": "png", "data": "AAAA"}}}, "images.i.data", "png file"),
        ({"images": {"i": {"format": "svg", "data": ""}}}, "", "Invalid enum value"),
        ({"images": {"i": {"format": "png", "data": "A" * 349_528}}}, "images.i.data", "262144"),
        ({"step": -1}, "step", "give one of 0"),
        ({"step": 2**31}, "step", "give one of 0"),
    ],
)  # fmt: skip
def test_a_value_beyond_a_bound_is_refused_by_name_and_nothing_is_stored(
    engine, payload, path, reason
):
    where, why = refusal(engine.send(line(1), logged(2, **payload)))
    assert where.startswith("events.1") and reason in why
    assert not path or where == f"events.1.payload.{path}"
    assert not Event.objects.exists() and not LoggedName.objects.exists()
    assert engine.send(line(1), logged(2, numbers={"a": 1})).status_code == 200


def test_not_even_json_s_relatives_of_nan_are_taken(engine):
    for text in ("NaN", "Infinity", "1e999"):
        event = json.dumps(logged(1, numbers={"a": 0.5})).replace("0.5", text)
        path = f"/api/v1/runs/{engine.run['id']}/events"
        body = f'{{"events": [{event}]}}'
        response = engine.client.generic(
            "POST", path, body, "application/json", headers=engine.headers
        )
        assert response.status_code in (400, 422), text
    assert not Event.objects.exists()


def test_too_many_names_are_refused(engine):
    names = {f"name {index}": "x" for index in range(500)}
    assert engine.send(logged(1, texts=names)).status_code == 200
    assert "500 names" in refusal(engine.send(logged(2, texts={"one more": "x"})))[1]
    assert engine.send(logged(2, texts={"name 3": "y"})).status_code == 200


def test_too_many_series_are_refused(engine, monkeypatch):
    monkeypatch.setattr("webapp.telemetry.ingest.logged_checks.MOST_SERIES", 30)
    many = [logged(1, numbers={f"m{index}": 1 for index in range(30)})]
    assert engine.send(*many).status_code == 200
    assert "30 names" in refusal(engine.send(logged(2, numbers={"last": 1})))[1]
    assert engine.send(logged(2, numbers={"m7": 1})).status_code == 200


def test_what_a_run_has_no_room_for_is_named_by_its_event(engine, monkeypatch):
    """So that a sender can leave it out, and what comes after it is stored."""
    monkeypatch.setattr("webapp.telemetry.ingest.logged_checks.MOST_SERIES", 3)
    monkeypatch.setattr("webapp.telemetry.ingest.logged_checks.MOST_NAMES", 2)
    assert engine.send(logged(1, texts={"a": "x"}, numbers={"m": 1, "n": 2})).status_code == 200
    fits = logged(2, texts={"a": "y", "b": "y"}, numbers={"o": 1})
    names = [fits, logged(3, texts={"b": "z"}), logged(4, tables={}, texts={"c": "z"})]
    assert refusal(engine.send(*names))[0] == "events.2.payload"
    series = [line(1), fits, logged(3, numbers={"o": 1}), logged(4, numbers={"p": 1})]
    assert refusal(engine.send(*series))[0] == "events.3.payload.numbers"
    assert engine.send(*names[:2]).status_code == 200


def test_a_number_is_a_series_under_its_name_and_moves_the_run_on(engine):
    first = logged(1, 3, numbers={"train/loss": 2, "a~b": 0.5})
    engine.send(first, logged(2, 7, numbers={"x": 1}))
    assert Run.objects.get().step == 7
    names = {one.name: one.points for one in Metric.objects.all()}
    assert names == {"logged.train~1loss": 1, "logged.a~0b": 1, "logged.x": 1}
    path = f"/api/v1/runs/{engine.run['id']}/metrics/logged.train~1loss"
    series = engine.client.get(path, headers=engine.headers).json()
    assert series["buckets"]["mean"] == [2.0]


def test_a_state_holds_the_newest_value_of_each_name_at_any_moment(engine):
    events = [logged(1, 0, texts={"first": "kept"}, nonfinite={"loss": "nan"})]
    for seq in range(2, 120):
        values = {"numbers": {"loss": seq}, "texts": {f"t{seq % 7}": str(seq)}}
        events.append(logged(seq, seq, **values))
    assert engine.send(*events).status_code == 200
    run = Run.objects.get()
    for seq in (1, 5, 70, 119):
        whole = folded(run, seq)["logged"]
        assert whole["texts"]["first"]["value"] == "kept" and whole["seq"] == seq
        newest = {f"t{one % 7}": str(one) for one in range(2, seq + 1)}
        shown = {name: one["value"] for name, one in whole["texts"].items() if name != "first"}
        assert shown == newest
    earlier = engine.client.get(
        f"/api/v1/runs/{run.pk}/logged?kind=texts&name=t3&limit=2&cursor=100",
        headers=engine.headers,
    ).json()
    assert [one["value"] for one in earlier["values"]] == ["94", "87"] and earlier["next"] == 87


def test_a_state_does_not_grow_with_the_numbers_that_are_logged(engine):
    engine.send(*(logged(seq, seq, numbers={"loss": seq}) for seq in range(1, 201)))
    run = Run.objects.get()
    assert [one[0] for one in json.loads(state(run))["events"]] == [200]


def test_a_guest_sees_numbers_and_no_texts(engine):
    table = {"columns": ["c"], "rows": [["/secret"]]}
    image = {"format": "png", "data": "iVBORw0KGgo=", "caption": "/secret"}
    values = {
        "texts": {"a": "/secret"},
        "images": {"i": image},
        "tables": {"t": table},
        "numbers": {"n": 0.5},
    }
    engine.send(logged(1, **values))
    shown = state(Run.objects.get(), view=View("/shared"))
    assert b"/secret" not in shown and b'"n":0.5' in shown.replace(b" ", b"")
    assert b"/secret" in state(Run.objects.get())


def test_a_name_that_no_column_holds_stops_no_run_of_the_site(cast):
    run, fencing = a_held_run(cast)
    texts = {"a\0b": "x", "n" * 300: "y", "plain": "z"}
    numbers = {"n" * 300: 1.5, "nan": float("nan")}
    ingest(run.pk, fencing, [an_event(1, "metric.logged", step=1, texts=texts, numbers=numbers)])
    assert [one.name for one in LoggedName.objects.all()] == ["plain"]
    assert Event.objects.get().payload["texts"]["n" * 300] == "y"
    catch_up(run.pk)
