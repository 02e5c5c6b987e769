"""Tests of the stream's access by person and token, and that it ends with the right to it.

The server checks its sockets by itself only once an hour here, so the notification closes them.
"""

from datetime import timedelta

import httpx
import pytest
from django.db import connection
from django.utils import timezone
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.helpers.builders import a_cast, a_held_run, a_token, store
from tests.helpers.waiting import patience
from tests.webapp.telemetry.stream_server import Client, a_server, a_session
from webapp.accounts.models import ApiToken, Scope
from webapp.accounts.tokens import revoke_token
from webapp.projects import membership, services
from webapp.projects.models import Project, Role, Visibility
from webapp.telemetry.stream.protocol import Close

pytestmark = pytest.mark.django_db(transaction=True)

IN, UNKNOWN = "subscribed", "not_found"


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server(recheck=3600.0) as served:
        yield served


@pytest.fixture
def port(served):
    yield served.port
    served.wait_until_idle()


@pytest.fixture
def scene():
    cast = a_cast()
    run, fencing = a_held_run(cast)
    store(run, fencing, 1)
    return cast, run


class Program(Client):
    """A client with a token and without a page's origin."""

    def __init__(self, port, secret):
        headers = {"Authorization": f"Bearer {secret}"}
        super().__init__(port, None, origin=None, additional_headers=headers)


def answer(client, run):
    """subscribed, not_found, or the code with which the socket was closed."""
    try:
        result = client.follow(run)
    except ConnectionClosed as closed:
        return closed.rcvd.code
    if result["type"] == "bye":
        return result["code"]
    return result["code"] if result["type"] == "error" else result["type"]


def closing_code(client):
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            client.hear()
    assert client.said[-1]["type"] == "bye"
    return closed.value.rcvd.code


def test_every_role_gets_the_response_listed_on_the_page(port, scene):
    cast, run = scene
    people = {"alice": IN, "mia": IN, "bob": IN, "vera": IN, "charlie": UNKNOWN}
    for who, expected in people.items():
        with Client(port, a_session(getattr(cast, who))) as client:
            assert answer(client, run) == expected, who
    Project.objects.update(visibility=Visibility.PRIVATE, created_by=cast.bob)
    for who, expected in (people | {"mia": UNKNOWN, "vera": UNKNOWN}).items():
        with Client(port, a_session(getattr(cast, who))) as client:
            assert answer(client, run) == expected, who


def test_a_token_follows_what_it_may_read(port, scene):
    cast, run = scene
    readers = {Scope.RUNS_READ, Scope.RUNS_WRITE, Scope.ADMIN}
    for scope in Scope:
        with Program(port, a_token(cast.alice, cast.project, scope)) as client:
            assert answer(client, run) == (IN if scope in readers else Close.NO_ACCESS), scope
    elsewhere = services.create_project(cast.project.workspace, "Elms", "elms")
    for user, place in ((cast.alice, elsewhere), (cast.charlie, cast.project)):
        with Program(port, a_token(user, place, Scope.ADMIN)) as client:
            assert answer(client, run) == UNKNOWN


def test_a_revoked_token_gets_nothing_with_any_cookie(port, scene):
    cast, run = scene
    secret = a_token(cast.alice, cast.project, Scope.ADMIN)
    for change in ({"revoked_at": timezone.now()}, {"revoked_at": None, "expires": timezone.now()}):
        ApiToken.objects.update(**change)
        with Program(port, secret) as client:
            assert answer(client, run) == Close.NOT_SIGNED_IN
    with Program(port, "nonsense") as client:
        assert answer(client, run) == Close.NOT_SIGNED_IN


def goodbye(client):
    """The last frame and the close frame carry the same code and reason."""
    with pytest.raises(ConnectionClosed) as closed:
        client.hear()
        client.hear()
    (bye,) = client.said
    assert (bye["code"], bye["reason"]) == (closed.value.rcvd.code, closed.value.rcvd.reason)
    return bye


def test_too_many_guesses_return_when_to_retry(port, scene, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (2, 3600.0)}
    with connection.cursor() as cursor:  # earlier tests guessed, too
        cursor.execute("TRUNCATE accounts_allowance")
    cast, run = scene
    secret = a_token(cast.alice, cast.project, Scope.ADMIN)
    for _ in range(2):
        with Program(port, "nonsense") as client:
            result = goodbye(client)
        assert result["code"] == Close.NOT_SIGNED_IN and "token is not valid" in result["reason"]
    with Program(port, "nonsense") as client:
        result = goodbye(client)
    assert result["code"] == Close.TOO_MANY and "too many wrong tokens" in result["reason"]
    with Program(port, secret) as client:
        assert answer(client, run) == IN, "a token that is right is no guess"
    assert 0 < result["retry_ms"] <= 3_600_000
    with Client(port, a_session(cast.bob)) as client:
        assert answer(client, run) == IN, "who is signed in guesses nothing"


def test_a_link_that_shows_nothing_says_so_on_the_socket(port, scene):
    with Client(port, None, path="/stream?share=nonsense") as client:
        result = goodbye(client)
    assert result["code"] == Close.NOT_SIGNED_IN and "link was revoked" in result["reason"]


def test_there_is_no_other_websocket(port, scene):
    from websockets.sync.client import connect

    secret = a_token(scene[0].alice, scene[0].project, Scope.ADMIN)
    with pytest.raises(InvalidStatus):
        connect(
            f"ws://127.0.0.1:{port}/other",
            subprotocols=["grove.v1"],
            additional_headers={"Authorization": f"Bearer {secret}"},
        )


def _remove(cast):
    membership.remove_member(cast.project.workspace, cast.bob.pk, cast.alice)


def _make_private(cast):
    services.change_visibility(cast.project, Visibility.PRIVATE)


@pytest.mark.parametrize("change", [_remove, _make_private])
def test_a_reader_who_loses_access_is_disconnected_by_notice(port, scene, change):
    cast, run = scene
    with (
        Client(port, a_session(cast.bob)) as bob,
        Client(port, a_session(cast.alice)) as alice,
    ):
        assert answer(bob, run) == answer(alice, run) == IN
        change(cast)
        assert closing_code(bob) == Close.NO_ACCESS
        alice.say(type="ping")
        assert alice.hear_of("pong")


def _sign_out(browser):
    assert browser.post("/sign-out/").status_code == 302


def _change_password(browser):
    new = {"password1": "deeply-rooted-17", "password2": "deeply-rooted-17"}
    assert browser.post("/account/password/first/", new).status_code == 302


@pytest.mark.parametrize("change", [_sign_out, _change_password])
def test_a_session_that_ends_takes_its_sockets_with_it(port, scene, client, change):
    cast, run = scene
    session = a_session(cast.bob)
    client.cookies["sessionid"] = session.session_key
    with Client(port, session) as bob, Client(port, a_session(cast.alice)) as alice:
        assert answer(bob, run) == answer(alice, run) == IN
        change(client)
        assert closing_code(bob) == Close.NOT_SIGNED_IN
        alice.say(type="ping")
        assert alice.hear_of("pong")


def test_a_role_that_still_reads_keeps_the_socket(port, scene):
    cast, run = scene
    with Client(port, a_session(cast.bob)) as bob:
        assert answer(bob, run) == IN
        membership.change_role(cast.project.workspace, cast.bob.pk, Role.VIEWER, cast.alice)
        bob.say(type="ping")
        assert bob.hear_of("pong")


def test_a_revoked_token_closes_its_socket_and_no_other(port, scene):
    cast, run = scene
    secrets = [a_token(cast.bob, cast.project, Scope.RUNS_READ) for _ in range(2)]
    first = ApiToken.objects.order_by("pk").first()
    with Program(port, secrets[0]) as dead, Program(port, secrets[1]) as living:
        assert answer(dead, run) == answer(living, run) == IN
        revoke_token(first)
        assert closing_code(dead) == Close.NOT_SIGNED_IN
        living.say(type="ping")
        assert living.hear_of("pong")


def test_a_token_that_expires_closes_its_socket(served, port, scene):
    cast, run = scene
    lifetime = timedelta(minutes=10)
    secret = a_token(cast.bob, cast.project, Scope.RUNS_READ, lifetime=lifetime)
    with Program(port, secret) as client:
        assert answer(client, run) == IN
        ApiToken.objects.update(expires=timezone.now())
        served.clock.turn(lifetime.total_seconds())
        assert closing_code(client) == Close.NOT_SIGNED_IN


def test_a_removed_member_cannot_subscribe_on_an_open_socket(port, scene):
    cast, run = scene
    with Client(port, a_session(cast.bob)) as bob:
        bob.say(type="hello", v=1)
        assert bob.hear()["type"] == "welcome"
        _remove(cast)
        bob.say(type="sub", sid=1, run=str(run.pk), after=0)
        assert bob.hear_of("error")["code"] == UNKNOWN


def test_a_reader_of_the_log_is_cut_off_with_what_let_them_in(port, scene, client):
    cast, run = scene
    secret, session = a_token(cast.alice, cast.project, Scope.RUNS_READ), a_session(cast.bob)
    client.cookies["sessionid"] = session.session_key
    ways = (
        ({"Authorization": f"Bearer {secret}"}, lambda: revoke_token(ApiToken.objects.get())),
        ({"Cookie": f"sessionid={session.session_key}"}, lambda: _sign_out(client)),
        ({"Cookie": f"sessionid={a_session(cast.bob).session_key}"}, lambda: _remove(cast)),
    )
    address = f"http://127.0.0.1:{port}/api/v1/runs/{run.pk}/events"
    results = []
    for headers, change in ways:
        headers |= {"Accept": "text/event-stream"}
        with httpx.stream("GET", address, headers=headers, timeout=10 * patience()) as log:
            lines = log.iter_lines()
            assert log.status_code == 200 and next(lines).startswith("id: ")
            change()
            results.append([line for line in lines if line][-1])
    assert results == [
        ": this token was revoked or has expired",
        ": you signed out",
        ": you may no longer see this run",
    ]
