"""Tests of API tokens: shown once, narrow in scope, and revoked at once."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from tests.helpers.builders import a_registry, a_run, a_token
from webapp.accounts.models import ApiToken, Scope
from webapp.projects.models import Membership, Role
from webapp.projects.services import create_project
from webapp.registry.models import SecondPairOfEyes


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def make(client, cast, **changes):
    scope_name = f"workspace-{cast.project.workspace_id}"
    form = {"name": "robot", "resource": scope_name, "scopes": ["runs:read"], "days": 30}
    return client.post("/tokens/", form | changes)


def test_a_token_is_shown_once_and_only_a_keyed_digest_is_kept(client, cast, settings):
    client.force_login(cast.bob)
    secret = make(client, cast).context["secret"]
    assert secret not in client.get("/tokens/").content.decode()
    assert secret not in str(ApiToken.objects.values().get())
    assert client.get("/api/v1/runs", headers=bearer(secret)).status_code == 200
    settings.SECRET_KEY = "another key of the server, as long as a key has to be"
    assert client.get("/api/v1/runs", headers=bearer(secret)).status_code == 401


def test_a_program_does_a_run_by_its_token(client, cast):
    secret = a_token(cast.bob, cast.project, Scope.RUNS_WRITE)
    new = {"project": cast.project.pk, "recipe": "mars2"}
    answer = client.post("/api/v1/runs", new, "application/json", headers=bearer(secret))
    assert answer.status_code == 201 and answer.json()["created_by"] == "bob"
    stopped = client.post(f"/api/v1/runs/{answer.json()['id']}/stop", headers=bearer(secret))
    assert stopped.json()["state"] == "stopped"


def test_a_token_needs_no_csrf_token_and_a_session_still_does(cast):
    from django.test import Client

    run = a_run(cast)
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.bob)
    assert client.post(f"/api/v1/runs/{run.pk}/stop").status_code == 403
    secret = a_token(cast.bob, cast.project, Scope.RUNS_WRITE)
    assert client.post(f"/api/v1/runs/{run.pk}/stop", headers=bearer(secret)).status_code == 200


def test_lists_hold_only_what_the_token_is_bound_to(client, cast):
    a_run(cast)
    elsewhere = create_project(cast.project.workspace, "Elms", "elms")
    inside, outside = (a_token(cast.bob, at, Scope.ADMIN) for at in (cast.project, elsewhere))
    for secret, runs, project in ((inside, 1, cast.project), (outside, 0, elsewhere)):
        headers = bearer(secret)
        assert len(client.get("/api/v1/runs", headers=headers).json()["runs"]) == runs
        (seen,) = client.get("/api/v1/projects", headers=headers).json()["projects"]
        assert seen["id"] == project.pk
        assert client.get("/api/v1/workspaces", headers=headers).json()["workspaces"] == []


def test_a_token_follows_its_users_role_down(client, cast):
    run = a_run(cast)
    headers = bearer(a_token(cast.bob, cast.project, Scope.ADMIN))
    Membership.objects.filter(user=cast.bob).update(role=Role.VIEWER)
    assert client.post(f"/api/v1/runs/{run.pk}/stop", headers=headers).status_code == 403
    assert client.get(f"/api/v1/runs/{run.pk}", headers=headers).status_code == 200
    Membership.objects.filter(user=cast.bob).delete()
    assert client.get(f"/api/v1/runs/{run.pk}", headers=headers).status_code == 404


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("who", ["alice", "mia", "bob", "vera"])
def test_a_token_has_a_scope_by_which_its_role_may_do_something(client, cast, who, scope):
    """Viewers read; members also request promotions and create projects, so the others have all."""
    client.force_login(getattr(cast, who))
    answer = make(client, cast, scopes=[scope])
    new = {"name": "robot", "scopes": [scope], "workspace": cast.project.workspace_id}
    by_rest = client.post("/api/v1/tokens", new, "application/json")
    if who != "vera" or scope == Scope.RUNS_READ:
        assert (answer.status_code, by_rest.status_code) == (200, 201)
        assert ApiToken.objects.count() == 2
    else:
        assert (answer.status_code, by_rest.status_code) == (422, 422)
        assert f"does not allow {scope}" in answer.content.decode()
        assert by_rest.json()["problems"][0]["value"] == scope
        assert not ApiToken.objects.exists()


def test_a_members_token_requests_a_promotion_and_makes_none(client, cast):
    known = a_registry(cast)
    address = f"/api/v1/models/{known['model_id']}/promotions"
    headers = bearer(a_token(cast.bob, cast.project, Scope.REGISTRY_PROMOTE))
    expected = {"alias": "champion", "version": 2, "reason": "It is better."}
    ask = partial(client.post, address, expected, "application/json", headers=headers)
    assert ask().status_code == 403
    SecondPairOfEyes.objects.create(workspace=cast.project.workspace, asked_by=cast.alice)
    assert ask().json()["state"] == "waiting"
    reader = bearer(a_token(cast.bob, cast.project, Scope.RUNS_WRITE))
    assert client.post(address, expected, "application/json", headers=reader).status_code == 403


@pytest.mark.parametrize(
    "change",
    [{"resource": "workspace-0"}, {"days": 1000}, {"scopes": []}, {"scopes": ["runs:steer"]}],
)
def test_values_outside_the_form_are_refused(client, cast, change):
    client.force_login(cast.bob)
    assert make(client, cast, **change).status_code == 422 and not ApiToken.objects.exists()


def test_a_revoked_token_leaves_the_list_and_authenticates_nobody(client, cast):
    secret = a_token(cast.bob, cast.project, Scope.RUNS_READ)
    token = ApiToken.objects.get()
    client.force_login(cast.bob)
    assert "robot" in client.get("/tokens/").content.decode()
    assert client.post(f"/tokens/{token.pk}/revoke/").url == "/tokens/"
    assert token.prefix not in client.get("/tokens/").content.decode()
    assert client.get("/api/v1/runs", headers=bearer(secret)).status_code == 401


def test_the_last_use_is_noted_to_the_minute(client, cast):
    headers = bearer(a_token(cast.bob, cast.project, Scope.RUNS_READ))
    assert ApiToken.objects.get().last_used is None
    client.get("/api/v1/runs", headers=headers)
    first = ApiToken.objects.get().last_used
    client.get("/api/v1/runs", headers=headers)
    assert ApiToken.objects.get().last_used == first
    ApiToken.objects.update(last_used=timezone.now() - timedelta(minutes=2))
    client.get("/api/v1/runs", headers=headers)
    assert ApiToken.objects.get().last_used >= first


def test_a_wrong_token_says_which_scope_or_that_it_is_not_valid(client, cast):
    run = a_run(cast)
    reader = bearer(a_token(cast.alice, cast.project, Scope.RUNS_READ))
    refused = client.post(f"/api/v1/runs/{run.pk}/stop", headers=reader)
    assert refused.status_code == 403 and "runs:write" in refused.json()["detail"]
    for secret in ("", "nonsense", "grove_" + "x" * 43, "\u00e9"):
        answer = client.get("/api/v1/runs", headers=bearer(secret))
        assert answer.status_code == 401 and "token" in answer.json()["detail"]
