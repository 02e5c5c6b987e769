"""Tests of reading by REST: filters, order, sparse fields, unchanged data, new data."""

import httpx
import pytest

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_held_run, a_run, a_token, an_event, some_events
from tests.helpers.waiting import patience
from tests.webapp.telemetry.stream_server import a_server
from webapp.accounts.models import Scope
from webapp.experiments.services import mark_finished
from webapp.telemetry.ingest.ingest import ingest


@pytest.fixture
def bob(client, cast):
    client.force_login(cast.bob)
    return client


def forest(cast):
    run, fencing = a_held_run(cast)
    planted = {"problem": "p", "statement": "s"}
    closed = {"program": "", "fraction": 1.0, "tests": [], "tokens": 3, "seconds": 0.1}
    closed |= {"stop": "end_of_text", "mean_logprob": -1.0, "policy_version": 0}
    events = [an_event(1, "tree.open", tree=1, step=1, **planted)]
    for node in (1, 2, 3):
        agent, seq = ("oak", "fern")[node % 2], len(events) + 1
        opened = {"agent": agent, "parent": 0, "depth": 1, "draws": {}}
        events.append(an_event(seq, "node.open", tree=1, node=node, **opened))
        ended = {"verdict": "passed" if node == 3 else "wrong_answer", "score": float(node == 3)}
        events.append(an_event(seq + 1, "node.close", tree=1, node=node, **closed, **ended))
    events.append(an_event(8, "tree.open", tree=8, step=2, **planted))
    ended = {"nodes": 3, "solved": True, "mean_score": 0.3, "filtered": False}
    events.append(an_event(9, "tree.close", tree=1, **ended))
    ingest(run.pk, fencing, events)
    return run, fencing


def test_runs_are_filtered_by_name_project_and_creator(bob, cast):
    run = a_run(cast)
    for query in ({"name": "SHAD"}, {"project": cast.project.pk}, {"created_by": "alice"}):
        body = bob.get("/api/v1/runs", query).json()["runs"]
        assert [one["id"] for one in body] == [str(run.pk)], query
    for query in ({"name": "x"}, {"project": 2**40}, {"created_by": "bob"}):
        assert bob.get("/api/v1/runs", query).json()["runs"] == [], query


def test_runs_are_walked_from_the_oldest_on(bob, cast):
    made = [str(a_run(cast).pk) for _ in range(3)]
    query, seen = {"sort": "oldest", "limit": 2}, []
    while query.get("cursor", "") is not None:
        page = bob.get("/api/v1/runs", query).json()
        seen += [one["id"] for one in page["runs"]]
        query["cursor"] = page["next"]
    assert seen == made


def test_only_the_requested_fields_are_returned(bob, cast):
    run = a_run(cast)
    (row,) = bob.get("/api/v1/runs", {"fields": "state,seed"}).json()["runs"]
    assert row == {"id": str(run.pk), "state": "queued", "seed": 0}
    refused = bob.get("/api/v1/runs", {"fields": "state,secret"})
    assert refused.status_code == 422 and refused.json()["problems"][0]["value"] == "secret"


def test_an_unchanged_resource_is_not_sent_again(bob, cast):
    run = a_run(cast)
    path = f"/api/v1/runs/{run.pk}"
    first = bob.get(path)
    again = bob.get(path, headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304 and not again.content
    bob.post(f"{path}/stop")
    assert bob.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 200


def test_trees_and_their_nodes_are_listed_and_filtered(bob, cast):
    run, _ = forest(cast)
    path = f"/api/v1/runs/{run.pk}/trees"
    first = bob.get(path, {"limit": 1}).json()
    assert first["next"] == 1 and first["trees"][0]["solved"] and first["trees"][0]["nodes"] == 3
    rest = bob.get(path, {"cursor": 1}).json()
    assert [tree["tree"] for tree in rest["trees"]] == [8] and not rest["trees"][0]["closed"]
    assert [tree["tree"] for tree in bob.get(path, {"step": 2}).json()["trees"]] == [8]

    def nodes(**query):
        return [one["node"] for one in bob.get(f"{path}/1/nodes", query).json()["nodes"]]

    assert nodes() == [1, 2, 3] and nodes(agent="fern") == [1, 3] and nodes(least_score=1) == [3]
    assert nodes(verdict="wrong_answer", cursor=1) == [2] and nodes(depth=2) == []
    assert bob.get(f"{path}/7/nodes").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_log_is_followed_to_its_end_by_server_sent_events():
    cast = a_cast()
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 3))
    secret = a_token(cast.vera, cast.project, Scope.RUNS_READ)
    headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}
    with a_server() as served:
        url = f"http://127.0.0.1:{served.port}/api/v1/runs/{run.pk}/events?after=1"
        with httpx.stream("GET", url, headers=headers, timeout=20 * patience()) as stream:
            seen = []
            for line in stream.iter_lines():
                if line.startswith("id: "):
                    seen.append(int(line[4:]))
                if seen and seen[-1] == 3 and run.head_seq < 4:
                    run.head_seq = ingest(run.pk, fencing, some_events(4, 4))
                    finish(run, fencing)
        served.wait_until_idle()
    assert seen == [2, 3, 4]


def finish(run, fencing):
    mark_finished(run.pk, fencing)
    run.refresh_from_db()
    assert run.run_state is RunState.FINISHED


def test_the_reference_shows_every_operation_and_loads_nothing_foreign(client, cast):
    from webapp.config.api import api

    page = client.get("/api/")
    assert page.status_code == 200
    text = page.content.decode()
    for operations in api.get_openapi_schema()["paths"].values():
        for operation in operations.values():
            assert f' id="{operation["operationId"]}">' in text
    assert "Wider trees" in text and "<style" not in text
    assert not [one for one in text.split('src="')[1:] if not one.startswith("/")]
