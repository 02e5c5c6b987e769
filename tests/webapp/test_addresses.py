"""Every address of the site, for everybody: one that is added without a row here fails.

A row tells what Alice (owner), Bob (member), Vera (may only look), Charlie (a stranger) and nobody
(not signed in) are answered. Whatever a row does not name as a method is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.urls import URLPattern, get_resolver, reverse

from tests.builders import a_held_run, an_event
from webapp.accounts.services import create_sign_in_link
from webapp.registry.models import Model
from webapp.telemetry.ingest import ingest

EVERYBODY = ("alice", "bob", "vera", "charlie", "nobody")
METHODS = ("get", "post", "patch", "delete")
ANY_METHOD = {"api-1:api-root", "api-1:openapi-json"}
"""Ninja's own, which change nothing and ask for no method."""

PAGE = (200, 200, 200, 200, 302)
"""What shows each their own; the others are sent to sign in."""
RUN_PAGE = (200, 200, 200, 404, 302)
"""What lies in a project: to a stranger it does not exist."""
RUN_FORM = (302, 302, 403, 404, 302)
REST = (200, 200, 200, 200, 401)
RUN_REST = (200, 200, 200, 404, 401)
OPEN = (200,) * 5


@dataclass(frozen=True)
class Row:
    name: str
    method: str
    answers: tuple[int, ...]
    body: dict[str, Any] = field(default_factory=dict)


ROWS = (
    Row("healthz", "get", OPEN),
    Row("sign-in", "get", OPEN),
    Row("sign-in", "post", OPEN),  # the form again, with what is wrong with it
    Row("sign-in-link", "get", (302,) * 5),
    Row("sign-out", "post", (302,) * 5),
    Row("runs", "get", PAGE),
    Row("launch", "get", PAGE),
    Row("launch", "post", (302, 302, 422, 422, 302), {"recipe": "mars2"}),
    Row("run", "get", RUN_PAGE),
    Row("stop-run", "post", RUN_FORM),
    Row("resume-run", "post", RUN_FORM),
    Row("models", "get", PAGE),
    Row("model", "get", RUN_PAGE),
    Row("datasets", "get", PAGE),
    Row("api-1:api-root", "get", (404,) * 5),
    Row("api-1:openapi-json", "get", OPEN),
    Row("api-1:list_runs", "get", REST),
    Row("api-1:create_run", "post", (201, 201, 403, 404, 401), {"recipe": "mars2"}),
    Row("api-1:get_run", "get", RUN_REST),
    Row("api-1:stop_run", "post", (200, 200, 403, 404, 401)),
    Row("api-1:resume_run", "post", (409, 409, 403, 404, 401)),
    Row("api-1:get_state", "get", RUN_REST),
    Row("api-1:get_events", "get", RUN_REST),
    Row("api-1:get_folded", "get", RUN_REST),
    Row("api-1:get_moments", "get", RUN_REST),
    Row("api-1:get_tree", "get", RUN_REST),
    Row("api-1:get_node", "get", RUN_REST),
    Row("api-1:list_recipes", "get", REST),
    Row("api-1:list_models", "get", REST),
    Row("api-1:list_datasets", "get", REST),
)


def addresses(resolver: Any = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """(name, pattern) of everything that the resolver knows."""
    for one in (resolver or get_resolver()).url_patterns:
        if isinstance(one, URLPattern):
            yield f"{prefix}{one.name}", one
        else:
            inner = f"{prefix}{one.namespace}:" if one.namespace else prefix
            yield from addresses(one, inner)


@pytest.fixture
def arguments(cast) -> dict[str, Any]:
    """What every placeholder of an address stands for: real things of Alice's project."""
    run, fencing = a_held_run(cast)
    planted = {"step": 1, "problem": "p", "statement": "s"}
    opened = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}
    events = [
        an_event(1, "tree.open", tree=7, **planted),
        an_event(2, "node.open", tree=7, node=1, **opened),
    ]
    ingest(run.pk, fencing, events)
    token = create_sign_in_link(cast.bob).rstrip("/").rsplit("/", 1)[1]
    model = Model.objects.create(project=cast.project, name="oak")
    return {"run_id": run.pk, "tree": 7, "node": 1, "token": token, "model_id": model.pk}


def filled_in(name: str, arguments: dict[str, Any]) -> str:
    pattern = dict(addresses())[name]
    return reverse(name, kwargs={key: arguments[key] for key in pattern.pattern.converters})


def sign_in(client, cast, who: str) -> None:
    if who != "nobody":
        client.force_login(getattr(cast, who))


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method}-{row.name}")
def test_everybody_is_answered_as_the_row_says(client, cast, arguments, row, who):
    sign_in(client, cast, who)
    address = filled_in(row.name, arguments)
    body = {"project": cast.project.pk, **row.body} if row.body else {}
    is_json = row.method == "post" and row.name.startswith("api-")
    kind = {"content_type": "application/json"} if is_json else {}
    response = getattr(client, row.method)(address, body, **kind)
    assert response.status_code == row.answers[EVERYBODY.index(who)]
    if response.status_code == 302 and row.answers is PAGE:
        assert response.url == f"/sign-in/?next={address}"
    if response.status_code in (403, 404):
        assert tells_what_to_do(response)


def tells_what_to_do(response) -> bool:
    """A refusal is in the site's own look, or problem details for a program."""
    if response["Content-Type"] == "application/problem+json":
        return bool(response.json()["detail"])
    return "error.html" in [template.name for template in response.templates]


@pytest.mark.parametrize("name", sorted({row.name for row in ROWS} - ANY_METHOD))
def test_an_address_takes_the_methods_of_its_rows_only(client, cast, arguments, name):
    address = filled_in(name, arguments)
    known = {row.method for row in ROWS if filled_in(row.name, arguments) == address}
    for method in sorted(set(METHODS) - known):
        client.force_login(cast.alice)
        assert getattr(client, method)(address).status_code == 405, method


@pytest.mark.parametrize(
    "name", ["healthz", "runs", "launch", "run", "models", "model", "datasets"]
)
def test_a_page_may_be_asked_for_without_its_content(client, cast, arguments, name):
    client.force_login(cast.bob)
    response = client.head(filled_in(name, arguments))
    assert response.status_code == 200 and response.content == b""


def test_every_address_has_a_row():
    names = [name for name, _ in addresses()]
    assert not any(name.endswith("None") for name in names), "an address without a name"
    assert set(names) == {row.name for row in ROWS}
