"""Tests that what an external engine did not measure is a gap everywhere, and never a zero."""

import json

import pytest

from engine.events.vocabulary import KINDS
from tests.webapp.experiments.test_external_engines import Engine, line
from tests.webapp.telemetry.test_metrics import all_points
from webapp.experiments.models import Run
from webapp.exports.columns import SOURCES
from webapp.exports.models import Table
from webapp.telemetry.ingest.figures import FIGURE_KINDS, figures_of
from webapp.telemetry.models import Event

STEP = {
    "seconds": 2.0, "phases": {"generate": 1.0}, "nodes": 4, "reward": 0.5, "solved": 0.25,
    "node_share": {"oak": 1.0}, "reward_by_agent": {"oak": 0.5}, "filtered_trees": 0,
    "dropped_nodes": 0, "tokens": 40, "training_seconds": 2.0,
}  # fmt: skip
UPDATE = {
    "agent": "oak", "version": 1, "nodes": 4, "loss": 0.1, "policy_loss": 0.1, "kl": 0.1,
    "clip_fraction": 0.1, "entropy": 1.0, "gradient_norm": 1.0, "learning_rate": 0.1, "lag": 0.0,
    "mismatch": 0.1,
}  # fmt: skip


@pytest.fixture
def engine(client, cast):
    return Engine(client, cast)


def a_step(step, **changes):
    return {"step": step, **STEP, **changes}


def values_of(engine, name):
    run = Run.objects.get(pk=engine.run["id"])
    return [value for metric, *_, value in all_points(run) if metric == name]


def sent(engine, *events):
    reply = engine.send(
        *(line(seq, kind, **fields) for seq, (kind, fields) in enumerate(events, 1))
    )
    assert reply.status_code == 200, reply.content
    return reply


def test_null_nan_and_absent_figures_are_gaps_and_no_zeros(engine):
    without = {name: value for name, value in UPDATE.items() if name not in ("kl", "entropy")}
    sent(
        engine,
        ("run.planned", {"steps": 9, "agents": ["oak"]}),
        ("step.end", a_step(1)),
        ("agent.update", {**UPDATE, "step": 1}),
        ("step.end", a_step(2, reward=None, solved="NaN", training_seconds=None)),
        ("agent.update", {**without, "step": 2, "loss": None}),
        ("step.end", a_step(3, reward_by_agent={"oak": None}, phases=None, reward=0.75)),
    )
    assert values_of(engine, "reward") == [0.5, 0.75]
    assert values_of(engine, "solved") == [0.25, 0.25]
    assert values_of(engine, "reward.oak") == [0.5, 0.5]
    assert values_of(engine, "kl.oak") == values_of(engine, "loss.oak") == [0.1]
    assert values_of(engine, "mismatch.oak") == [0.1, 0.1]
    for name in ("step.trees", "step.carried_trees", "stale_nodes.oak", "row_tokens.oak"):
        assert values_of(engine, name) == [], "a default is nothing that was measured"
    stored = Event.objects.get(run=engine.run["id"], seq=5).payload
    assert stored["kl"] is None and stored["loss"] is None and "row_tokens" not in stored
    run = Run.objects.get(pk=engine.run["id"])
    assert (run.step, run.result["reward"], run.result["training_seconds"]) == (3, 0.75, 2.0)


def test_nan_and_infinity_of_pythons_json_are_gaps(engine):
    event = line(1, "step.end", **a_step(1, reward=float("nan"), seconds=float("inf")))
    body = json.dumps({"events": [event]})
    assert "NaN" in body and "Infinity" in body
    reply = engine.post(f"/{engine.run['id']}/events", body)
    assert reply.status_code == 200, reply.content
    stored = Event.objects.get(run=engine.run["id"]).payload
    assert stored["reward"] is None and stored["seconds"] is None and stored["solved"] == 0.25


def test_figures_of_single_tokens_may_be_missing(engine):
    def payload_of(kind, given):
        from webapp.telemetry.ingest.external_engines import Line, checked

        return checked(0, Line(1, 1.0, kind, 1, 1, json.dumps(given).encode())).payload

    text = {"prompt": "p", "tokens": ["a", "b", "c"]}
    for given, stored in (
        ([-0.5, None, "NaN"], [-0.5, None, None]), ([None], [None]), (None, []), ([], []),
        ([-1.0], [-1.0]),
    ):  # fmt: skip
        assert payload_of("node.text", {**text, "logprobs": given})["logprobs"] == stored
    assert payload_of("node.text", text)["logprobs"] == []
    learned = {"agent": "oak", "step": 1, "version": 2}
    nodes = [{"node": 1, "entropy": [0.5, None], "ratio": None}, {"node": 2, "ratio": ["inf"]}]
    assert payload_of("tree.learned", {**learned, "nodes": nodes})["nodes"] == [
        {"node": 1, "entropy": [0.5, None], "ratio": []},
        {"node": 2, "entropy": [], "ratio": [None]},
    ]


@pytest.mark.parametrize("kind", sorted(FIGURE_KINDS))
def test_every_figure_of_the_vocabulary_may_be_missing(kind):
    from webapp.telemetry.ingest.external_engines import Line, checked

    numbers, tables, _ = figures_of(KINDS[kind])
    needed = {
        "step.end": {"step": 1}, "agent.update": {"step": 1, "agent": "a"},
        "eval.result": {"step": 1, "split": "test"}, "node.credit": {}, "system.sample": {},
        "node.close": {
            "program": "", "verdict": "passed", "score": 1.0, "tests": [], "stop": "end_of_text",
        },
        "tree.close": {"solved": True, "filtered": False},
        "health": {
            "rule": "r", "state": "opened", "step": 1, "title": "t", "seen": "s", "since": 1,
            "since_time": 1.0,
        },
    }[kind]  # fmt: skip
    for given in (needed, {**needed, **dict.fromkeys([*numbers, *tables])}):
        payload = checked(0, Line(1, 1.0, kind, 1, 1, json.dumps(given).encode())).payload
        assert [payload.get(name) for name in numbers] == [None] * len(numbers)
        assert {**payload, **needed} == payload
        assert all(not payload.get(name) for name in tables)


@pytest.mark.parametrize(
    ("kind", "fields", "named"),
    [
        ("step.end", {"step": None}, "step"),
        ("step.end", {"reward": "much"}, "reward"),
        ("step.end", {"reward": []}, "reward"),
        ("step.end", {"nodes": 1.5}, "nodes"),
        ("step.end", {"phases": {"generate": "x"}}, "phases"),
        ("step.start", {"step": 1, "trees": None}, "trees"),
        (
            "tree.learned",
            {"tree": 1, "agent": "a", "step": 1, "version": None, "nodes": []},
            "version",
        ),
        ("tree.learned", {"tree": 1, "agent": "a", "step": 1, "version": 1, "nodes": [{}]}, "node"),
        (
            "node.text",
            {"tree": 1, "node": 1, "prompt": "", "tokens": [], "logprobs": ["x"]},
            "logprobs",
        ),
    ],
)
def test_anything_else_is_refused_as_before(engine, kind, fields, named):
    base = a_step(1) if kind == "step.end" else {}
    reply = engine.send(line(1, kind, **{**base, **fields}))
    assert reply.status_code == 422
    (problem,) = reply.json()["problems"]
    assert problem["path"].startswith("events.0.payload") and named in problem["reason"]


def test_pages_rest_and_exports_of_such_a_run_do_not_fail(engine, client, cast):
    evaluation = {"step": 2, "split": "validation", "agents": {"oak": None, "elm": 0.5}}
    sent(
        engine,
        ("run.planned", {"steps": 9, "agents": ["oak", "elm"]}),
        ("step.end", a_step(1, seconds=None, phases={"generate": None, "learn": 1.0})),
        ("eval.result", {"step": 0, "split": "validation", "agents": {"oak": 0.25}}),
        ("eval.result", evaluation),
        ("step.end", {"step": 2}),
        ("system.sample", {}),
    )
    run = Run.objects.get(pk=engine.run["id"])
    client.force_login(cast.bob)
    address = f"/api/v1/runs/{run.pk}"
    rest = ("", "/metrics", "/steps", "/state", "/folded", "/evaluations", "/trees", "/events")
    pages = (f"/runs/{run.pk}/", f"/charts/?run={run.pk}", "/", f"/compare/?run={run.pk}")
    for path in (*(f"{address}{one}" for one in rest), *pages):
        assert client.get(path, follow=True).status_code == 200, path
    steps = client.get(f"{address}/steps").json()["steps"]
    assert [(one["seconds"], one["phases"]) for one in steps] == [
        (None, {}),
        (None, {"learn": 1.0}),
    ]
    rows = list(SOURCES[Table.EVALUATIONS].rows(run))
    shown = {(row[5], row[7]): row[8] for row in rows}
    assert shown[2, "pass@1/oak"] is None and shown[2, "pass@1/elm"] == 0.5
    values = [row[-1] for row in SOURCES[Table.METRICS].rows(run)]
    assert values and all(isinstance(value, int | float) for value in values)
    list(SOURCES[Table.RUNS].rows(run))


@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        ("run.planned", {"steps": 1, "agents": ["oak", "a\u202eb"]}, "agents.1"),
        ("step.end", a_step(1, node_share={"a\x1bb": 1.0}), "node_share.0"),
        ("agent.update", {**UPDATE, "step": 1, "agent": "\u200b"}, "agent"),
        ("tree.open", {"step": 1, "problem": "a\nb", "statement": "s"}, "problem"),
    ],
)
def test_names_of_agents_and_problems_are_refused_if_they_are_not_visible(
    engine, kind, fields, path
):
    event = line(1, kind, **fields)
    reply = engine.send({**event, "tree": 1} if kind == "tree.open" else event)
    assert reply.status_code == 422
    (problem,) = reply.json()["problems"]
    assert problem["path"] == f"events.0.payload.{path}" and "visible" in problem["reason"]
    assert problem["value"].replace("\n", "").isprintable()
