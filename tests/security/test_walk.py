"""Tests of every address of the site for every person and token: one without a rule fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from django.db import transaction
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone

from tests.helpers.builders import a_token
from tests.helpers.large import large_but
from tests.security.rules import (
    ANY_METHOD,
    EVERYBODY,
    IN_A_PROJECT,
    NO_TOKEN,
    PAGE,
    ROWS,
    WITH_MAIL_AND_PROVIDER,
    Row,
)
from tests.webapp.accounts.openid_provider import CLIENT, SECRET, a_provider
from webapp.accounts.models import ApiToken, Scope
from webapp.alerts.models import Alert, AlertRule, Channel
from webapp.comments.models import Comment, Notice
from webapp.config.environment import read_provider
from webapp.datasets.models import Dataset
from webapp.experiments.models import Experiment, Run
from webapp.projects.models import Project, Visibility
from webapp.projects.services import create_project
from webapp.registry.models import Model, ModelImport

OF_DATASETS = {"dataset_id", "dataset_version_id", "report_id"}
HIDDEN = "quercus-occulta"
GUESTS = {"shared", "shared-report"}
"""Anyone who has a link sees what it shows, member or not."""
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


@cache
def patterns() -> dict[str, URLPattern]:
    """The patterns of the whole site, by name."""
    return dict(addresses())


def filled_in(name: str, arguments: dict[str, Any]) -> str:
    keys = placeholders(patterns()[name])
    values = {key: arguments.get(f"{name}.{key}", arguments.get(key)) for key in keys}
    return reverse(name, kwargs=values)


def placeholders(one: URLPattern) -> set[str]:
    """The names of the variable parts of an address."""
    regex = getattr(one.pattern, "regex", None)
    return set(one.pattern.converters) | set(regex.groupindex if regex else ())


@contextmanager
def undone(session: str | None = None) -> Iterator[Client]:
    """A fresh client, signed in by a session's key; its changes are rolled back at the end."""
    with transaction.atomic():
        client = Client()
        if session:
            client.cookies["sessionid"] = session
        yield client
        transaction.set_rollback(True)


def send_request(
    client: Client, row: Row, cast: Any, arguments: dict[str, Any], **headers: str
) -> Any:
    body = row.body(cast) if callable(row.body) else row.body
    is_json = row.method in ("post", "patch", "delete") and row.name.startswith("api-")
    kind = {"content_type": "application/json"} if is_json else {}
    headers = {"Upload-Offset": "1", **headers}  # required for appending bytes
    address = filled_in(row.name, arguments)
    return getattr(client, row.method)(address, body, headers=headers, **kind)


def by_token(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def explains_what_to_do(response: Any) -> bool:
    """A refusal is a page in the site's design, or problem details for a program."""
    if response.request["REQUEST_METHOD"] == "HEAD":
        return response["Content-Type"] == "application/problem+json"
    if response["Content-Type"] == "application/problem+json":
        return bool(response.json()["detail"])
    return "error.html" in [template.name for template in response.templates]


def test_every_address_has_a_rule():
    names = [name for name, _ in addresses()]
    assert not any(name.endswith("None") for name in names), "an address without a name"
    assert set(names) == {row.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method}-{row.name}")
def test_every_role_gets_the_response_of_the_rule(cast, arguments, sessions, row):
    for who, expected in zip(EVERYBODY, row.answers, strict=True):
        with undone(sessions.get(who)) as client:
            response = send_request(client, row, cast, arguments)
            assert response.status_code == expected, who
            if expected == 302 and row.answers is PAGE and row.method == "get":
                assert response.url == f"/sign-in/?next={filled_in(row.name, arguments)}"
            if expected in (403, 404):
                assert explains_what_to_do(response), who


@pytest.fixture(scope="module")
def provider() -> Iterator[Any]:
    with a_provider() as provider:
        yield provider


@pytest.fixture
def organisation(provider, settings) -> None:
    """The site sends mail, and an organisation's provider signs people in."""
    given = {"GROVE_OIDC_ISSUER": provider.issuer, "GROVE_OIDC_CLIENT": CLIENT}
    settings.OIDC = read_provider({**given, "GROVE_OIDC_SECRET": SECRET})
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [settings.OIDC.app()]}}
    settings.MAIL_IS_SENT = True
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"


def test_mail_and_a_provider_open_their_own_addresses_and_no_other(
    cast, arguments, sessions, organisation
):
    of_accounts = [row for row in PAGE_ROWS if row.name.startswith(_OF_ACCOUNTS)]
    assert WITH_MAIL_AND_PROVIDER.keys() <= {(row.name, row.method) for row in of_accounts}
    results = {}
    for row in of_accounts:
        expected = WITH_MAIL_AND_PROVIDER.get((row.name, row.method), row.answers)
        for who, status in zip(EVERYBODY, expected, strict=True):
            with undone(sessions.get(who)) as client:
                if (got := send_request(client, row, cast, arguments).status_code) != status:
                    results[row.method, row.name, who] = (got, status)
    assert not results


_OF_ACCOUNTS = ("account_", "socialaccount_", "openid_connect_", "mfa_")
LINKS = ("secret", "shared-comparison.secret", "shared-report.secret", "invitation.token")


@pytest.mark.parametrize("link", large_but(LINKS[:1], LINKS))
def test_the_secret_of_a_link_opens_what_it_is_a_link_to_and_nothing_else(
    cast, arguments, settings, link
):
    """As a token, as the secret of every other kind of link, in a query and as a session."""
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (100_000, 60.0)}
    secret = arguments[link]
    ways = {"a token": ("", by_token(secret)), "a query": (f"?secret={secret}&token={secret}", {})}
    for row in REST_ROWS:
        for what, (query, headers) in ways.items():
            with undone(secret) as client:
                at = f"{filled_in(row.name, arguments)}{query}"
                kind = {} if row.method == "get" else {"content_type": "application/json"}
                sent = {"headers": {"Upload-Offset": "1", **headers}, **kind}
                assert getattr(client, row.method)(at, **sent).status_code == 401, (row, what)
    others = [row for row in ROWS if placeholders(patterns()[row.name]) & {"secret"}]
    for row in others:
        known = arguments.get(f"{row.name}.secret", arguments["secret"])
        with undone() as client:
            requested = {**arguments, "secret": secret, f"{row.name}.secret": secret}
            expected = 200 if secret == known else 404
            assert send_request(client, row, cast, requested).status_code == expected, row


@pytest.fixture(scope="module")
def tokens(world) -> dict[tuple[str, Scope], str]:
    """Token secrets of the owner and of a viewer, for each scope."""
    cast = world[0]
    workspace = cast.project.workspace
    return {
        (who, scope): a_token(getattr(cast, who), workspace, scope)
        for who in ("alice", "vera")
        for scope in Scope
    }


@pytest.fixture(scope="module")
def workers_tokens(world) -> dict[tuple[str, Scope], str]:
    """Token secrets of a maintainer and a member, for each scope."""
    cast = world[0]
    workspace = cast.project.workspace
    people = {who: getattr(cast, who) for who in ("mia", "bob")}
    return {(w, s): a_token(one, workspace, s) for w, one in people.items() for s in Scope}


EIGHTHS = large_but(REST_ROWS[::8], REST_ROWS)
"""Every address is walked in every role; with tokens a part of them."""


@pytest.mark.parametrize("row", EIGHTHS, ids=lambda row: f"{row.method}-{row.name}")
def test_a_token_does_what_its_scope_and_its_users_role_both_allow(cast, arguments, tokens, row):
    assert row.scopes, "name the scopes that allow it"
    for (who, scope), token in tokens.items():
        with undone() as client:
            response = send_request(client, row, cast, arguments, **by_token(token))
            allowed = row.answers[EVERYBODY.index(who)]
            assert response.status_code == (allowed if scope in row.scopes else 403), (who, scope)


@pytest.mark.parametrize("row", EIGHTHS, ids=lambda row: f"{row.method}-{row.name}")
def test_a_token_of_a_maintainer_or_a_member_does_no_more_than_they_may(
    cast, arguments, workers_tokens, row
):
    """With a scope that allows it, and with one that does not."""
    others = [scope for scope in Scope if scope not in row.scopes]
    for who in ("mia", "bob"):
        own = row.answers[EVERYBODY.index(who)]
        requested = [(scope, own) for scope in sorted(row.scopes - {None})[:1]]
        requested += [(scope, 403) for scope in others[:1]]
        assert requested
        for scope, expected in requested:
            with undone() as client:
                headers = by_token(workers_tokens[who, scope])
                response = send_request(client, row, cast, arguments, **headers)
                assert response.status_code == expected, (who, scope)


@pytest.mark.parametrize("row", EIGHTHS, ids=lambda row: f"{row.method}-{row.name}")
def test_a_token_that_is_dead_or_bound_elsewhere_gets_nothing(cast, arguments, sessions, row):
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
            response = send_request(client, row, cast, arguments, **by_token(token))
            assert response.status_code == stranger, what
    for what, change in DEAD.items():
        with undone(sessions["mia"]) as client:  # an additional session does not help
            token = a_token(cast.alice, workspace, Scope.ADMIN)
            change(cast)
            response = send_request(client, row, cast, arguments, **by_token(token))
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
            response = send_request(client, row, cast, arguments, **by_token(token))
        assert response.status_code == row.answers[EVERYBODY.index("nobody")], row


def test_every_rule_of_something_in_a_project_is_walked_for_private_ones():
    of_a_project = {
        "run_id", "model_id", "project_id", "comment_id", "notice_id", "export_id", *OF_DATASETS,
        "experiment_id", "promotion_id", "evaluation_id", "import_id", "rule_id",
        "channel_id", "report_page_id",
    }  # fmt: skip
    named = {name for name, one in addresses() if of_a_project & set(one.pattern.converters)}
    named -= {name for name in named if name.startswith("above-")}  # redirect, and look up nothing
    made = {"api-1:create_run", "api-1:create_experiment_of_runs", "mark-runs", "compare-trees"}
    made |= {"comparison-shares", "api-1:list_comparison_shares", "api-1:share_comparison"}
    made |= {"revoke-comparison-share", "api-1:unshare_comparison", "api-1:check_experiment"}
    made |= {"comments", "api-1:list_comments", "api-1:create_comment", "api-1:create_export"}
    made |= {"api-1:compare_versions", "compare-versions", "api-1:create_model", "search-problems"}
    made |= {"add-alert-rule", "add-alert-channel", "api-1:list_alerts", "api-1:list_alert_rules"}
    made |= {"api-1:create_alert_rule", "api-1:list_alert_channels", "api-1:create_alert_channel"}
    made |= {"api-1:create_report"}
    made |= {"api-1:track_run", "api-1:add_rollouts"}
    assert named | made == IN_A_PROJECT


PRIVATE = [row for row in ROWS if row.name in IN_A_PROJECT]


@pytest.mark.parametrize("row", large_but(PRIVATE[::4], PRIVATE), ids=lambda row: row.name)
def test_a_private_project_exists_for_its_creator_and_the_owners_only(
    cast, arguments, sessions, row
):
    Project.objects.update(visibility=Visibility.PRIVATE, created_by=cast.bob)
    creators = {"project-visibility": 302, "api-1:change_project": 200}
    for who in ("alice", "bob", "mia", "vera", "charlie"):
        expected = row.answers[EVERYBODY.index(who)] if who in ("alice", "bob") else 404
        if who == "bob":
            expected = creators.get(row.name, expected)
        with undone(sessions[who]) as client:
            assert send_request(client, row, cast, arguments).status_code == expected, who


@pytest.mark.parametrize("member", large_but(["mia"], ["mia", "vera"]))
def test_no_response_reveals_a_private_project(cast, arguments, sessions, member):
    """Lists, searches, menus, exports: every address that shows something, of any kind."""
    of_bob = {"visibility": Visibility.PRIVATE, "created_by": cast.bob, "name": HIDDEN}
    Project.objects.filter(pk=cast.project.pk).update(**of_bob)
    for table in (Experiment, Model, Dataset):
        table.objects.update(name=Concat(Value(HIDDEN), Cast("pk", CharField())))
    Run.objects.update(tags=[HIDDEN], notes=HIDDEN)
    ModelImport.objects.update(name=HIDDEN, error=HIDDEN)
    user = getattr(cast, member)
    Comment.objects.update(text=f"{HIDDEN} @{member}")
    Notice.objects.exclude(comment=None).update(user=user)
    Notice.objects.update(title=HIDDEN)  # of an alert, which everybody has
    Channel.objects.update(name=HIDDEN)
    AlertRule.objects.filter(user=cast.alice).update(user=user)
    Alert.objects.update(title=HIDDEN, user=user)
    seen = {"bob": set(), member: set()}
    for row in (row for row in ROWS if row.method == "get"):
        for who, row_names in seen.items():
            with undone(sessions[who]) as client:
                if HIDDEN.encode() in body_of(send_request(client, row, cast, arguments)):
                    row_names.add(row.name)
    assert {"runs", "api-1:list_runs", "datasets", "models", "launch", "workspace"} <= seen["bob"]
    assert seen[member] == GUESTS


def body_of(response: Any) -> bytes:
    """The body of the response; empty for a stream that only an event loop reads."""
    if not response.streaming:
        return response.content
    return b"" if response.is_async else b"".join(response.streaming_content)


def test_an_address_takes_the_methods_of_its_rules_only(cast, arguments, sessions):
    at = {row.name: filled_in(row.name, arguments) for row in ROWS}
    known = {(at[row.name], row.method) for row in ROWS}
    taken = []
    for name in sorted(at.keys() - ANY_METHOD):
        for method in sorted(set(METHODS) - {method for path, method in known if path == at[name]}):
            with undone(sessions["alice"]) as client:
                if getattr(client, method)(at[name]).status_code != 405:
                    taken.append((name, method))
    assert not taken


def test_a_head_request_returns_a_page_without_its_content(client, cast, arguments):
    seen = [row for row in PAGE_ROWS if row.method == "get" and row.answers[2] == 200]
    client.force_login(cast.bob)
    for row in seen:
        requested = row.body(cast) if callable(row.body) else row.body
        response = client.head(filled_in(row.name, arguments), requested)
        assert response.status_code == 200 and response.content == b"", row.name
