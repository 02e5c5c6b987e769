"""Tests of conditional requests: once per `Idempotency-Key`, and changes only with `If-Match`."""

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from django.db import connection, transaction
from django.test import Client

from tests.helpers.builders import a_cast, a_registry, a_run, a_token
from tests.helpers.waiting import eventually
from webapp.accounts.models import ApiToken, Scope
from webapp.artifacts import services
from webapp.artifacts.models import Upload
from webapp.experiments.models import Run
from webapp.exports.models import Export
from webapp.idempotency.models import KeptAnswer
from webapp.projects.models import Invitation, Project, Visibility
from webapp.registry.model_files import imports
from webapp.registry.models import Promotion
from webapp.sharing.models import ComparisonShare, Share


def post(client, path, body, key, **headers):
    headers = {"Idempotency-Key": key, **headers}
    return client.post(f"/api/v1/{path}", body, "application/json", headers=headers)


def test_a_repeated_request_gets_the_same_response_and_creates_once(client, cast):
    client.force_login(cast.bob)
    new = {"project": cast.project.pk, "table": "runs", "format": "csv"}
    first, again = (post(client, "exports", new, "night") for _ in range(2))
    assert first.status_code == again.status_code == 201
    assert first.content == again.content and Export.objects.count() == 1
    other = post(client, "exports", {**new, "format": "jsonl"}, "night")
    assert other.status_code == 409
    assert other.json()["problems"][0]["path"] == "Idempotency-Key"
    client.force_login(cast.mia)
    assert post(client, "exports", new, "night").json()["id"] != first.json()["id"]


def test_a_refusal_does_not_spend_the_key(client, cast):
    client.force_login(cast.bob)
    assert post(client, "workspaces", {"name": ""}, "night").status_code == 422
    assert post(client, "workspaces", {"name": "Elms"}, "night").status_code == 201
    assert not KeptAnswer.objects.exclude(status=201).exists()
    for odd in ("", "x" * 201):
        assert post(client, "workspaces", {"name": "Ashes"}, odd).status_code == 422


def test_an_object_deleted_before_a_refusal_stays_deleted(client, cast, var_directory):
    client.force_login(cast.bob)
    model = imports.create_model(cast.project, "elm", cast.bob)
    upload = services.begin(cast.project, cast.bob, Upload.Kind.MODEL, "model.safetensors", 4)
    services.finish(services.append(upload, 0, BytesIO(b"none")))
    body = {"uploads": [str(upload.pk)]}
    refused = post(client, f"models/{model.pk}/versions", body, "night")
    assert refused.status_code == 422 and not Upload.objects.exists()
    assert not KeptAnswer.objects.exists()


def test_a_stored_response_is_not_returned_after_a_loss_of_rights(client, cast):
    def ask(**headers):
        return post(client, "runs", {"project": cast.project.pk, "recipe": "mars2"}, "n", **headers)

    first, other = (a_token(cast.bob, cast.project, Scope.RUNS_WRITE) for _ in range(2))
    by, through_another = ({"authorization": f"Bearer {one}"} for one in (first, other))
    assert ask(**by).status_code == 201 and ask(**by).status_code == 201
    assert ask(**through_another).status_code == 409
    Project.objects.update(visibility=Visibility.PRIVATE, created_by=cast.alice)
    assert ask(**by).status_code == 409 and Run.objects.count() == 1


def test_a_decision_on_a_promotion_is_made_once_under_a_key(client, cast, var_directory):
    known = a_registry(cast)
    client.force_login(cast.alice)
    path = f"models/promotions/{known['promotion_id']}/approve"
    assert post(client, path, {}, "yes").content == post(client, path, {}, "yes").content
    assert post(client, path, {}, "again").status_code == 409
    moved = {"alias": "champion", "version": 1, "reason": "It was better."}
    requested = f"models/{known['model_id']}/promotions"
    ids = {post(client, requested, moved, "back").json()["id"] for _ in range(2)}
    assert len(ids) == 1 and Promotion.objects.filter(alias="champion").count() == 1


def test_a_secret_is_returned_once_and_not_stored(client, cast):
    run, workspace = a_run(cast), cast.project.workspace
    client.force_login(cast.alice)
    payload = {
        f"runs/{run.pk}/shares": {"days": 1},
        f"workspaces/{workspace.slug}/invitations": {"role": "viewer"},
        "tokens": {"name": "robot", "scopes": ["runs:read"], "workspace": workspace.pk},
        "comparison/shares": {"run": [str(run.pk), str(a_run(cast).pk)]},
    }
    for path, body in payload.items():
        made, again = (post(client, path, body, path) for _ in range(2))
        assert (made.status_code, again.status_code) == (201, 409), path
        (secret,) = (made.json()[name] for name in ("link", "token") if name in made.json())
        kept = KeptAnswer.objects.get(key=path)
        assert len(secret) > 40 and not kept.body and not kept.tells, path
    for table in (Share, ComparisonShare, Invitation, ApiToken):
        assert table.objects.count() == 1


def test_a_token_that_ended_is_answered_nothing(client, cast):
    token = a_token(cast.bob, cast.project.workspace, Scope.ADMIN)
    by = {"authorization": f"Bearer {token}"}
    new = {"project": cast.project.pk}
    assert post(client, "exports", new, "night", **by).status_code == 201
    cast.bob.tokens.update(revoked_at="2026-01-01T00:00:00Z")
    assert post(client, "exports", new, "night", **by).status_code == 401
    assert post(client, "exports", new, "night").status_code == 401


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("keys", "seeds", "statuses", "runs"),
    [
        (("night", "night"), (1, 1), [201, 201], 1),
        (("night", "night"), (1, 2), [201, 409], 1),
        (("night", "day"), (1, 1), [201, 201], 2),
    ],
    ids=["one request", "two requests under one key", "two keys"],
)
def test_of_two_requests_at_once_under_one_key_one_is_done(keys, seeds, statuses, runs):
    """Both requests are in flight before either can proceed: each waits for a lock, the first for
    its project's, which is held here, the second for the first's."""
    cast = a_cast()
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            Project.objects.select_for_update().get(pk=cast.project.pk)
            requested = [
                pool.submit(start_run, cast, *pair) for pair in zip(keys, seeds, strict=True)
            ]
            eventually(lambda: waiting_for_locks() == 2, "both requests to wait for a lock", 30)
            assert not any(one.done() for one in requested)
        answers = [one.result(30) for one in requested]
    assert sorted(answer.status_code for answer in answers) == statuses
    made = {answer.json()["id"] for answer in answers if answer.status_code == 201}
    assert len(made) == Run.objects.count() == runs
    assert {kept.key for kept in KeptAnswer.objects.all()} == set(keys)


def start_run(cast, key, seed):
    try:
        client = Client()
        client.force_login(cast.bob)
        body = {"project": cast.project.pk, "recipe": "mars2", "overrides": {"seed": seed}}
        return post(client, "runs", body, key)
    finally:
        connection.close()


def waiting_for_locks():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # cached for a whole transaction
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0]


def test_a_change_is_made_only_to_what_was_read(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    address = f"/api/v1/runs/{run.pk}"
    etag = client.get(address)["ETag"]

    def mark(*tags, **headers):
        return client.patch(address, {"tags": tags}, "application/json", headers=headers)

    assert mark("first", **{"If-Match": etag}).status_code == 200
    late = mark("second", **{"If-Match": etag})
    assert late.status_code == 412 and late["Content-Type"] == "application/problem+json"
    newer = client.get(address)
    assert newer.json()["tags"] == ["first"]
    assert late.json()["problems"][0]["reason"] == f"it is {newer['ETag']} now"
    assert mark("third", **{"If-Match": newer["ETag"]}).json()["tags"] == ["third"]
    assert mark("fourth", **{"If-Match": "*"}).status_code == 200
    client.force_login(cast.charlie)
    assert mark("fifth", **{"If-Match": "*"}).status_code == 404


def test_a_read_under_another_etag_is_refused_by_its_name(client, cast):
    client.force_login(cast.bob)
    address = f"/api/v1/runs/{a_run(cast).pk}"
    etag = client.get(address)["ETag"]
    refused = client.get(address, headers={"If-Match": '"another"'})
    assert refused.status_code == 412 and refused["Content-Type"] == "application/problem+json"
    assert refused.json()["problems"] == [
        {"path": "If-Match", "value": '"another"', "reason": f"it is {etag} now"}
    ]
    for condition in (etag, "*"):
        assert client.get(address, headers={"If-Match": condition}).status_code == 200
    assert client.get("/api/v1/runs/none", headers={"If-Match": '"x"'}).status_code == 404


def test_a_condition_on_what_one_may_not_read_is_not_passed_over(client, cast):
    known = a_registry(cast)
    address = f"/api/v1/models/{known['model_id']}/versions/2"
    blind = a_token(cast.bob, cast.project, Scope.REGISTRY_WRITE)

    def note(**headers):
        headers |= {"authorization": f"Bearer {blind}"}
        return client.patch(address, {"notes": "x"}, "application/json", headers=headers)

    assert note(**{"If-Match": '"another"'}).status_code == 403
    assert note(**{"If-Match": "*"}).status_code == 403 and note().status_code == 200
    client.force_login(cast.bob)
    a_token(cast.bob, cast.project, Scope.RUNS_READ)
    unread = f"/api/v1/tokens/{ApiToken.objects.latest('pk').pk}"
    assert client.delete(unread, headers={"If-Match": '"x"'}).status_code == 412
    assert client.delete(unread).status_code == 204


def test_a_viewer_stars_for_themselves_and_marks_nothing(client, cast):
    run = a_run(cast)
    client.force_login(cast.vera)
    address = f"/api/v1/runs/{run.pk}"
    assert client.patch(address, {"starred": True}, "application/json").json()["starred"]
    for change in ({"tags": ["x"]}, {"starred": False, "archived": True}, {}):
        assert client.patch(address, change, "application/json").status_code == 403


def test_an_experiment_is_checked_before_it_is_made(client, cast):
    client.force_login(cast.bob)

    def check(**more):
        requested = {"project": cast.project.pk, "recipe": "mars2", "seeds": [1, 2], **more}
        return client.post("/api/v1/experiments/check", requested, "application/json")

    found = check(sweep={"training.steps": [3]}).json()["runs"]
    assert [(run["seed"], run["steps"]) for run in found] == [(1, 3), (2, 3)]
    refused = check(overrides={"search.nodes_per_tree": 0})
    assert refused.status_code == 422
    assert refused.json()["problems"][0]["path"] == "search.nodes_per_tree"
    assert not cast.project.experiments.exists()


def test_experiments_are_listed_and_opened(client, cast):
    run = a_run(cast)
    client.force_login(cast.vera)
    (one,) = client.get("/api/v1/experiments?name=SHADE").json()["experiments"]
    assert (one["name"], one["run_count"], one["created_by"]) == ("Shade", 1, "alice")
    opened = client.get(f"/api/v1/experiments/{one['id']}").json()
    assert [change["id"] for change in opened["runs"]] == [str(run.pk)]
    assert client.get("/api/v1/experiments?project=0").json()["experiments"] == []
    client.force_login(cast.charlie)
    assert client.get("/api/v1/experiments").json()["experiments"] == []
    assert client.get(f"/api/v1/experiments/{one['id']}").status_code == 404
