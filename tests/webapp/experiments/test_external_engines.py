"""Tests of external engines: their events arrive by REST, each stored once, whatever is sent."""

import gzip
import json
import tracemalloc
import zlib

import pyarrow
import pytest
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_held_run, a_run, a_token
from webapp.accounts.models import Scope
from webapp.experiments.external_engines import fail_silent_runs
from webapp.experiments.models import Run
from webapp.experiments.scheduling.leases import take_lease
from webapp.experiments.selectors import sweepable_runs
from webapp.telemetry.ingest.external_engines import read_batch
from webapp.telemetry.ingest.tree_checks import refuse_broken_trees
from webapp.telemetry.models import Event


class Engine:
    """An external engine: a program with a token, a run, and a log of its own."""

    def __init__(self, client, cast):
        self.client = client
        secret = a_token(cast.bob, cast.project, Scope.RUNS_WRITE, Scope.TELEMETRY_WRITE)
        self.headers = {"authorization": f"Bearer {secret}"}
        new = {"project": cast.project.pk, "recipe": "mars2", "outside": True}
        self.run = self.post("", new).json()

    def post(self, path, body):
        options = {"content_type": "application/json", "headers": self.headers}
        return self.client.post(f"/api/v1/runs{path}", body, **options)

    def send(self, *events):
        return self.post(f"/{self.run['id']}/events", {"events": list(events)})


def line(seq, kind="log.line", tree=None, node=None, **payload):
    payload = payload or {"level": "info", "message": f"line {seq}"}
    return {
        "seq": seq, "time": 1790000000.5, "kind": kind, "tree": tree, "node": node,
        "payload": payload,
    }  # fmt: skip


def zstd(content):
    return pyarrow.compress(content, "zstd", asbytes=True)


@pytest.fixture
def engine(client, cast):
    return Engine(client, cast)


def stored(engine):
    events = Event.objects.filter(run=engine.run["id"]).order_by("seq")
    return list(events.values_list("seq", flat=True))


def test_a_run_elsewhere_is_begun_by_no_worker(engine):
    assert engine.run["state"] == "starting" and engine.run["outside"]
    assert sweepable_runs() == []
    assert take_lease(engine.run["id"], "worker", 60) is None


def test_a_batch_that_is_sent_again_is_stored_once(engine):
    assert engine.send(line(1), line(2)).json()["head_seq"] == 2
    assert engine.send(line(1), line(2), line(3)).json()["head_seq"] == 3
    assert engine.send().json()["head_seq"] == 3
    assert stored(engine) == [1, 2, 3]


def test_a_gap_is_answered_with_the_seq_that_is_expected(engine):
    engine.send(line(1))
    response = engine.send(line(3))
    assert response.status_code == 409 and response.json()["expected_seq"] == 2
    assert engine.send(line(2), line(4)).json()["expected_seq"] == 2
    assert stored(engine) == [1]


def test_the_run_follows_what_its_engine_says_to_its_end(engine):
    assert engine.send(line(1, "run.state", state="running")).json()["state"] == "running"
    engine.post(f"/{engine.run['id']}/stop", {})
    assert engine.send().json()["stop_requested"]
    end = line(2, "run.state", state="stopped")
    assert engine.send(end).json()["state"] == "stopped"
    assert engine.send(end).json()["head_seq"] == 2, "sent again after the end: nothing new"
    assert engine.send(line(3)).status_code == 409
    assert engine.post(f"/{engine.run['id']}/resume", {}).json()["state"] == "starting"
    assert engine.send(line(3)).json()["head_seq"] == 3


def test_a_failure_elsewhere_keeps_its_first_cause(engine):
    first = line(1, "error", message="no memory\0 left")
    result = engine.send(first, line(2, "run.state", state="failed", reason="exit status 1"))
    assert result.json()["state"] == "failed"
    assert Run.objects.get(pk=engine.run["id"]).error == "no memory\ufffd left"


def test_an_engine_that_falls_silent_has_failed(engine):
    assert fail_silent_runs() == 0
    Run.objects.update(lease_expires=timezone.now() - timezone.timedelta(seconds=1))
    assert sweepable_runs() == [] and fail_silent_runs() == 1
    assert Run.objects.get().run_state is RunState.FAILED
    assert "15 minutes" in Run.objects.get().error


@pytest.mark.parametrize(
    "event, path",
    [
        (line(0), "events.0.seq"),
        (line(1) | {"seq": 2**63}, "events.0.seq"),
        (line(1) | {"seq": "1"}, "events[0].seq"),
        (line(1) | {"time": 1e300}, "events.0.time"),
        (line(1) | {"node": 2**31}, "events.0.node"),
        (line(1, "node.open", agent="a"), "events.0.tree"),
        (line(1, "tree.open", tree=1, step=1), "events.0.payload"),
        (line(1, "no.such"), "events.0.kind"),
        (line(1, "step.start", step=2**31, trees=1), "events.0.payload.step"),
        (line(1, "run.waiting", name="x", deadline_seconds=1e300),
         "events.0.payload.deadline_seconds"),
        (line(1, "eval.result", step=1, split="a\0", agents={}, standard_errors={}, problems=1),
         "events"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_stored_are_named(engine, event, path):
    response = engine.send(event)
    assert response.status_code == 422, response.content
    fault = response.json()["problems"][0]
    assert fault["path"] == path and fault["reason"]
    assert stored(engine) == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"events": 1}', b'{"a": []}', b'{"events": [' * 3000, b"\xff"]
)
def test_a_body_that_is_no_batch_is_refused(engine, body):
    assert engine.post(f"/{engine.run['id']}/events", body).status_code == 422


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, zstd])
def test_a_packed_body_is_not_unpacked(engine, pack):
    """So no body can be a bomb, whatever its head declares."""
    body = json.dumps({"events": [line(1)]}).encode()
    path = f"/api/v1/runs/{engine.run['id']}/events"
    kind = {"content_type": "application/json"}
    for content in (pack(body), pack(b" " * (1 << 24) + body)):
        for encoding in ("gzip", "deflate", "zstd", "br", "identity"):
            headers = {**engine.headers, "content-encoding": encoding}
            refusal = engine.client.post(path, content, headers=headers, **kind)
            assert refusal.status_code in (415, 422) and refusal.json()["detail"]
    assert stored(engine) == []


def test_a_payload_is_stored_whole_without_unknown_fields(engine):
    engine.send(line(1, "tree.open", tree=1, step=1, problem="p", statement="s", extra="x"))
    payload = Event.objects.get(run=engine.run["id"]).payload
    assert payload == {"step": 1, "problem": "p", "statement": "s", "difficulty": 0}


def test_an_engine_of_a_worker_is_reported_only_by_that_worker(client, cast):
    run, _ = a_held_run(cast)
    client.force_login(cast.alice)
    body = json.dumps({"events": [line(1)]})
    response = client.post(f"/api/v1/runs/{run.pk}/events", body, "application/json")
    assert response.status_code == 409 and "worker" in response.json()["detail"]
    assert (
        client.post(f"/api/v1/runs/{a_run(cast).pk}/events", body, "application/json").status_code
        == 409
    )


def node_open(seq, node, parent, tree=1):
    payload = {"agent": "oak", "parent": parent, "depth": 1, "draws": {}}
    return line(seq, "node.open", tree, node, **payload)


def tree_open(seq, tree=1):
    return line(seq, "tree.open", tree, step=1, problem="p", statement="Sort.")


@pytest.mark.parametrize(
    ("nodes", "place", "field", "value"),
    [
        ([(1, 1)], 1, "payload.parent", 1),
        ([(1, 0), (2, 3), (3, 2)], 2, "payload.parent", 3),
        ([(1, 9)], 1, "payload.parent", 9),
        ([(1, -1)], 1, "payload.parent", -1),
        ([(1, 0), (2, 1), (1, 2)], 3, "node", 1),
        ([(0, 0)], 1, "node", 0),
    ],
    ids=["itself", "each other", "unknown", "below the root", "twice", "the root"],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_nodes_that_form_no_tree_are_refused_and_not_stored(
    engine, nodes, place, field, value, at_once
):
    """A node that was its own parent froze the page of everyone who opened the run."""
    lines = [tree_open(1), *(node_open(2 + at, *one) for at, one in enumerate(nodes))]
    if at_once:
        refused, stays = engine.send(*lines), []
    else:  # already stored events count
        for one in lines[:place]:
            assert engine.send(one).status_code == 200
        refused, stays, place = engine.send(lines[place]), list(range(1, place + 1)), 0
    (problem,) = refused.json()["problems"]
    assert (refused.status_code, problem["path"]) == (422, f"events.{place}.{field}")
    assert problem["value"] == value
    assert any(word in problem["reason"] for word in ("opened before", "once", "root"))
    assert stored(engine) == stays


def test_trees_grow_over_batches_and_a_reopened_tree_restarts(engine):
    assert engine.send(tree_open(1), node_open(2, 7, 0)).status_code == 200
    grown = [node_open(3, 8, 7), tree_open(4, 2), node_open(5, 7, 0, tree=2), node_open(6, 3, 8)]
    assert engine.send(*grown).status_code == 200
    assert engine.send(node_open(3, 8, 7), *grown[1:]).status_code == 200  # the same again
    anew = [line(7, "run.resumed", step=0), tree_open(8), node_open(9, 7, 0), node_open(10, 8, 7)]
    assert engine.send(*anew).status_code == 200
    assert stored(engine) == list(range(1, 11))


def test_a_batch_costs_what_it_names_however_large_its_tree_is(engine):
    """Every node of the tree was read for each batch: 0.4 s for 5,000 nodes by the hundred."""
    assert engine.send(tree_open(1, 1), node_open(2, 1, 0, tree=1)).status_code == 200
    many = [tree_open(3, 2), *(node_open(3 + n, n, n - 1, tree=2) for n in range(1, 4000))]
    assert engine.send(*many).status_code == 200
    run = Run.objects.get()

    def peak(tree, parent):
        new = node_open(run.head_seq + 1, 5000, parent, tree=tree)
        batch = read_batch(json.dumps({"events": [new]}).encode()).events
        tracemalloc.start()
        refuse_broken_trees(run.pk, batch, run.head_seq)
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    peak(1, 1)  # cached by Django after a first query
    small, large = peak(1, 1), peak(2, 3999)
    assert large < 1.5 * small, f"{large:,} bytes, {small:,} for a tree of one node"


def test_an_integer_that_is_written_with_a_point_is_one(engine):
    """JSON Schema does not distinguish 1.0 from 1; a string, a boolean and a fraction are no
    integers."""
    first = line(1, "step.start", step=1.0, trees=2.0) | {"seq": 1.0}
    assert engine.send(first).json()["head_seq"] == 1 and stored(engine) == [1]
    payload = Event.objects.get(run=engine.run["id"]).payload
    assert (payload["step"], type(payload["step"])) == (1, int)
    for wrong in (1.5, "2", True):
        assert engine.send(line(2) | {"seq": wrong}).status_code == 422, wrong
        assert engine.send(line(2, "step.start", step=wrong, trees=2)).status_code == 422, wrong
