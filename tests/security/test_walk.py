"""Every address of the site, for everybody and for every token: one without a rule fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone

from tests.builders import a_held_run, a_registry, a_search, a_token, an_event
from tests.datasets import stored_version
from tests.security.rules import (
    ANY_METHOD,
    EVERYBODY,
    IN_A_PROJECT,
    NO_TOKEN,
    PAGE,
    ROWS,
    Row,
)
from webapp.accounts.models import ApiToken, Scope, User
from webapp.accounts.services import create_sign_in_link
from webapp.artifacts.models import Upload
from webapp.artifacts.services import begin
from webapp.comments.models import Comment, Notice
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.datasets.models import Dataset
from webapp.datasets.reports import request_overlap, request_validation
from webapp.experiments.listing import Wish
from webapp.experiments.models import Experiment, Run
from webapp.exports.making import make
from webapp.exports.models import Export, Format, Table
from webapp.exports.services import ask_for, take
from webapp.projects.membership import invite
from webapp.projects.models import Invitation, Project, Role, Visibility
from webapp.projects.services import create_project
from webapp.registry.models import Model
from webapp.sharing import comparisons
from webapp.sharing.services import create_share
from webapp.telemetry.ingest import ingest

OF_DATASETS = {"dataset_id", "dataset_version_id", "report_id"}
METHODS = ("get", "post", "patch", "delete")
REST_ROWS = [row for row in ROWS if row.name.startswith("api-") and row.answers[-1] == 401]

PAGE_ROWS = [row for row in ROWS if not row.name.startswith("api-")]


def addresses(resolver: Any = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """(name, pattern) of everything that the resolver knows."""
    for one in (resolver or get_resolver()).url_patterns:
        if isinstance(one, URLPattern):
            yield f"{prefix}{one.name}", one
        else:
            inner = f"{prefix}{one.namespace}:" if one.namespace else prefix
            yield from addresses(one, inner)


@pytest.fixture
def arguments(cast, var_directory) -> dict[str, Any]:
    """What every placeholder of an address stands for: real things of Alice's project."""
    run, fencing = a_held_run(cast)
    planted = {"step": 1, "problem": "p", "statement": "s"}
    opened = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}
    events = [
        an_event(1, "tree.open", tree=7, **planted),
        an_event(2, "node.open", tree=7, node=1, **opened),
        an_event(3, "system.sample", cpu_percent=50.0, memory_mb=100.0),
    ]
    ingest(run.pk, fencing, events)
    version = stored_version(cast, "planted")
    request_validation(version, cast.alice)
    overlap = request_overlap(version, stored_version(cast, "planted too"), 0.5, cast.alice)
    share, link = create_share(run, cast.alice, timedelta(days=1))
    comment = write_comment(Target((run,)), cast.alice, "See it, @bob.", "http://testserver")
    comparison, compared = comparisons.share(
        [run, run], "test", cast.alice, timedelta(days=1), frozen=True
    )
    workspace = cast.project.workspace
    a_token(cast.alice, workspace, Scope.ADMIN)
    joined = invite(workspace, cast.alice, Role.VIEWER, single_use=True)
    return {
        "pk": _a_passkey_of_another().pk,
        "provider_id": "oidc",
        "uidb36": "1",
        "key": "abc",
        "secret": _last_part(link),
        "share_id": share.pk,
        "revoke-comparison-share.share_id": comparison.pk,
        "api-1:unshare_comparison.share_id": comparison.pk,
        "shared-comparison.secret": _last_part(compared),
        "api-1:get_shared_comparison.secret": _last_part(compared),
        "export_id": _a_written_export(cast).pk,
        "comment_id": comment.pk,
        "notice_id": comment.notices.get(user=cast.bob).pk,
        "run_id": run.pk,
        "experiment_id": run.experiment_id,
        "step": 1,
        "tree": 7,
        "node": 1,
        **_of_a_search(cast),
        "name": "system.cpu_percent",
        **a_registry(cast),
        "dataset_id": version.dataset_id,
        "dataset_version_id": version.pk,
        "dataset-problem.number": 1,
        "api-1:get_dataset_problem.number": 1,
        "report_id": overlap.pk,
        "upload_id": begin(cast.project, cast.alice, Upload.Kind.DATASET, "a.jsonl", 3).pk,
        "project_id": cast.project.pk,
        "slug": workspace.slug,
        "user_id": cast.vera.pk,
        "token_id": ApiToken.objects.get().pk,
        "invitation_id": Invitation.objects.get().pk,
        "sign-in-link.token": _last_part(create_sign_in_link(cast.bob)),
        "invitation.token": _last_part(joined),
    }


def _of_a_search(cast: Any) -> dict[str, Any]:
    search = a_search(cast)
    names = ("get_search", "get_answer")
    runs = {f"api-1:{name}.run_id": search.run_id for name in names}
    return {**runs, "version_id": search.run.dataset_version_id}


def _a_passkey_of_another() -> Authenticator:
    dora = User.objects.create_user("dora")
    return Authenticator.objects.create(user=dora, type=Authenticator.Type.WEBAUTHN, data={})


def _a_written_export(cast: Any) -> Export:
    ask_for(cast.project, cast.alice, Table.RUNS, Format.CSV, Wish())
    export = take()
    make(export, Event())
    return export


def _last_part(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[1]


def filled_in(name: str, arguments: dict[str, Any]) -> str:
    keys = placeholders(dict(addresses())[name])
    values = {key: arguments.get(f"{name}.{key}", arguments.get(key)) for key in keys}
    return reverse(name, kwargs=values)


def placeholders(one: URLPattern) -> set[str]:
    """The names of what varies in an address."""
    regex = getattr(one.pattern, "regex", None)
    return set(one.pattern.converters) | set(regex.groupindex if regex else ())


@contextmanager
def undone() -> Iterator[Client]:
    """A fresh client; what it changes is taken back at the end."""
    with transaction.atomic():
        yield Client()
        transaction.set_rollback(True)


def ask(client: Client, row: Row, cast: Any, arguments: dict[str, Any], **headers: str) -> Any:
    body = row.body(cast) if callable(row.body) else row.body
    is_json = row.method in ("post", "patch", "delete") and row.name.startswith("api-")
    kind = {"content_type": "application/json"} if is_json else {}
    address = filled_in(row.name, arguments)
    return getattr(client, row.method)(address, body, headers=headers, **kind)


def by_token(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def tells_what_to_do(response: Any) -> bool:
    """A refusal is in the site's own look, or problem details for a program."""
    if response["Content-Type"] == "application/problem+json":
        return bool(response.json()["detail"])
    return "error.html" in [template.name for template in response.templates]


def test_every_address_has_a_rule():
    names = [name for name, _ in addresses()]
    assert not any(name.endswith("None") for name in names), "an address without a name"
    assert set(names) == {row.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method}-{row.name}")
def test_everybody_is_answered_as_the_rule_says(cast, arguments, row):
    for who, expected in zip(EVERYBODY, row.answers, strict=True):
        with undone() as client:
            if who != "nobody":
                client.force_login(getattr(cast, who))
            response = ask(client, row, cast, arguments)
            assert response.status_code == expected, who
            if expected == 302 and row.answers is PAGE and row.method == "get":
                assert response.url == f"/sign-in/?next={filled_in(row.name, arguments)}"
            if expected in (403, 404):
                assert tells_what_to_do(response), who


@pytest.mark.parametrize("row", REST_ROWS, ids=lambda row: f"{row.method}-{row.name}")
def test_a_token_does_what_its_scope_and_its_users_role_both_allow(cast, arguments, row):
    workspace = cast.project.workspace
    assert row.scopes, "name the scopes that allow it"
    for scope in Scope:
        for who in ("alice", "vera"):
            with undone() as client:
                token = a_token(getattr(cast, who), workspace, scope)
                response = ask(client, row, cast, arguments, **by_token(token))
                allowed = row.answers[EVERYBODY.index(who)]
                assert response.status_code == (allowed if scope in row.scopes else 403), scope


@pytest.mark.parametrize("row", REST_ROWS, ids=lambda row: f"{row.method}-{row.name}")
def test_a_token_that_is_dead_or_bound_elsewhere_gets_nothing(cast, arguments, row):
    workspace = cast.project.workspace
    stranger = 403 if row.scopes is NO_TOKEN else row.answers[EVERYBODY.index("charlie")]
    elsewhere = create_project(workspace, "Elms", "elms", created_by=cast.alice)
    places = {
        "another project": a_token(cast.alice, elsewhere, Scope.ADMIN),
        "another workspace": a_token(
            cast.alice, cast.charlie.memberships.get().workspace, Scope.ADMIN
        ),
        "a stranger's": a_token(cast.charlie, workspace, Scope.ADMIN),
    }
    for what, token in places.items():
        with undone() as client:
            response = ask(client, row, cast, arguments, **by_token(token))
            assert response.status_code == stranger, what
    for what, change in DEAD.items():
        with undone() as client:
            token = a_token(cast.alice, workspace, Scope.ADMIN)
            change(cast)
            client.force_login(cast.mia)  # a session beside it does not help
            response = ask(client, row, cast, arguments, **by_token(token))
            assert response.status_code == 401, what
            assert response["WWW-Authenticate"] == "Bearer"


def _revoke(cast: Any) -> None:
    ApiToken.objects.update(revoked_at=timezone.now())


def _expire(cast: Any) -> None:
    ApiToken.objects.update(expires=timezone.now() - timedelta(seconds=1))


def _close_account(cast: Any) -> None:
    cast.alice.is_active = False
    cast.alice.save()


DEAD = {"revoked": _revoke, "expired": _expire, "of a closed account": _close_account}


def test_a_token_opens_no_page(cast, arguments):
    token = a_token(cast.alice, cast.project.workspace, Scope.ADMIN)
    for row in PAGE_ROWS:
        with undone() as client:
            response = ask(client, row, cast, arguments, **by_token(token))
        assert response.status_code == row.answers[EVERYBODY.index("nobody")], row


def test_every_rule_of_something_in_a_project_is_walked_for_private_ones():
    of_a_project = {
        "run_id", "model_id", "project_id", "comment_id", "notice_id", "export_id", *OF_DATASETS,
        "experiment_id",
    }  # fmt: skip
    named = {name for name, one in addresses() if of_a_project & set(one.pattern.converters)}
    made = {"api-1:create_run", "api-1:create_experiment_of_runs", "mark-runs", "compare-trees"}
    made |= {"comparison-shares", "api-1:list_comparison_shares", "api-1:share_comparison"}
    made |= {"revoke-comparison-share", "api-1:unshare_comparison", "api-1:check_experiment"}
    made |= {"comments", "api-1:list_comments", "api-1:create_comment", "api-1:create_export"}
    assert named | made == IN_A_PROJECT


@pytest.mark.parametrize("row", [r for r in ROWS if r.name in IN_A_PROJECT], ids=lambda r: r.name)
def test_a_private_project_exists_for_its_creator_and_the_owners_only(cast, arguments, row):
    Project.objects.update(visibility=Visibility.PRIVATE, created_by=cast.bob)
    creators = {"project-visibility": 302, "api-1:change_project": 200}
    for who in ("alice", "bob", "mia", "vera", "charlie"):
        expected = row.answers[EVERYBODY.index(who)] if who in ("alice", "bob") else 404
        if who == "bob":
            expected = creators.get(row.name, expected)
        with undone() as client:
            client.force_login(getattr(cast, who))
            assert ask(client, row, cast, arguments).status_code == expected, who


def test_nothing_tells_others_of_what_lies_in_a_private_project(cast, arguments):
    """Lists, searches, menus, exports: every address that shows something, whatever it is for."""
    Project.objects.update(visibility=Visibility.PRIVATE, created_by=cast.bob, name=HIDDEN)
    for table in (Experiment, Model, Dataset):
        table.objects.update(name=HIDDEN)
    Run.objects.update(tags=[HIDDEN], notes=HIDDEN)
    Comment.objects.update(text=f"{HIDDEN} @mia")
    Notice.objects.update(user=cast.mia)
    seen = {"bob": set(), "mia": set(), "vera": set()}
    for row in (row for row in ROWS if row.method == "get"):
        for who, told in seen.items():
            with undone() as client:
                client.force_login(getattr(cast, who))
                response = ask(client, row, cast, arguments)
                if HIDDEN.encode() in body_of(response):
                    told.add(row.name)
    assert {"runs", "api-1:list_runs", "datasets", "models", "launch", "workspace"} <= seen["bob"]
    assert seen["mia"] | seen["vera"] == GUESTS


HIDDEN = "quercus-occulta"
GUESTS = {"shared"}
"""Whoever has a link sees what it shows, member or not."""


def body_of(response: Any) -> bytes:
    """What is sent; of a stream that only an event loop reads, nothing."""
    if not response.streaming:
        return response.content
    return b"" if response.is_async else b"".join(response.streaming_content)


def test_an_address_takes_the_methods_of_its_rules_only(cast, arguments):
    at = {row.name: filled_in(row.name, arguments) for row in ROWS}
    known = {(at[row.name], row.method) for row in ROWS}
    taken = []
    for name in sorted(at.keys() - ANY_METHOD):
        for method in sorted(set(METHODS) - {method for path, method in known if path == at[name]}):
            with undone() as client:
                client.force_login(cast.alice)
                if getattr(client, method)(at[name]).status_code != 405:
                    taken.append((name, method))
    assert not taken


def test_a_page_may_be_asked_for_without_its_content(client, cast, arguments):
    seen = [row for row in PAGE_ROWS if row.method == "get" and row.answers[2] == 200]
    client.force_login(cast.bob)
    for row in seen:
        asked = row.body(cast) if callable(row.body) else row.body
        response = client.head(filled_in(row.name, arguments), asked)
        assert response.status_code == 200 and response.content == b"", row.name
