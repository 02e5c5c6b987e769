"""Tests of rate limits: counted per caller across all processes, refused with `Retry-After`."""

import threading
from datetime import timedelta

import httpx
import pytest
from django.core.cache import cache
from django.db import connection, connections
from django.urls import get_resolver

from tests.helpers.builders import a_held_run, a_token
from tests.helpers.waiting import patience
from tests.security.test_walk import addresses
from tests.webapp.telemetry.stream_server import a_server
from webapp.accounts.models import ApiToken, Scope
from webapp.http import rate_limits
from webapp.http.rate_limits import Limit
from webapp.sharing.services import create_share


def test_so_many_at_once_and_then_one_at_a_time(db):
    limit = Limit("test", 3, 600.0)
    assert [limit.spend("bob") for _ in range(3)] == [0, 0, 0]
    assert 195 <= limit.spend("bob") <= 200, "one of three comes back after 200 s"
    assert limit.spend("mia") == 0
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_allowance SET full_at = full_at - interval '200 seconds'")
    assert limit.spend("bob") == 0 and limit.spend("bob") > 0


@pytest.mark.django_db(transaction=True)
def test_concurrent_processes_share_one_rate_limit():
    limit, let_in = Limit("crowd", 10, 3600.0), []

    def send():
        let_in.extend(limit.spend("all") == 0 for _ in range(5))
        connections["default"].close()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30 * patience())
    assert len(let_in) == 30 and sum(let_in) == 10


def test_too_many_requests_return_when_to_retry(client, cast, settings):
    run, _ = a_held_run(cast)
    settings.RATE_LIMITS = {
        **settings.RATE_LIMITS,
        "tokens": (1, 3600.0),
        "exports": (1, 3600.0),
    }
    client.force_login(cast.bob)
    assert [client.post("/tokens/").status_code for _ in range(2)] == [422, 429]
    refused = client.post("/tokens/")
    assert 3000 <= int(refused["Retry-After"]) <= 3600 and b"Too many requests" in refused.content
    client.force_login(cast.mia)
    assert client.post("/tokens/").status_code == 422, "somebody else is not held up"
    address = f"/api/v1/runs/{run.pk}/events"
    headers = {"authorization": f"Bearer {a_token(cast.bob, cast.project, Scope.RUNS_READ)}"}
    assert client.get(address, headers=headers).status_code == 200
    response = client.get(address, headers=headers)
    assert response.status_code == 429 and response["Content-Type"] == "application/problem+json"
    assert response.json()["status"] == 429 and 3000 <= int(response["Retry-After"]) <= 3600


def test_all_tokens_of_a_user_share_an_allowance_that_one_cannot_use_up(client, cast, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "exports": (2, 3600.0)}
    run, _ = a_held_run(cast)
    address = f"/api/v1/runs/{run.pk}/events"
    every = [a_token(cast.bob, cast.project, Scope.RUNS_READ) for _ in range(6)]

    def answers(secret, number):
        return [send(client, secret, address).status_code for _ in range(number)]

    assert answers(every[0], 30).count(200) == 2, "its own allowance, as ever"
    results = [answers(secret, 3) for secret in every[1:]]
    assert results == [[200, 200, 429]] * 3 + [[429] * 3] * 2, "8 of all: what was refused is free"
    refused = send(client, every[5], address)
    assert 1 <= int(refused["Retry-After"]) <= 3600
    client.force_login(cast.bob)
    assert client.get(address).status_code == 200, "a session is counted by itself"
    other = a_token(cast.mia, cast.project, Scope.RUNS_READ)
    assert answers(other, 1) == [200], "and so is somebody else"


@pytest.mark.parametrize("path", ["tokens", "exports", "runs/{run}/shares", "runs/{run}/events"])
def test_writes_and_lists_of_rest_are_counted_apart(client, cast, settings, path):
    run, _ = a_held_run(cast)
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, (1, 3600.0))
    client.force_login(cast.bob)
    address = f"/api/v1/{path.format(run=run.pk)}"
    assert client.post(address, "{", "application/json").status_code in (400, 422)
    assert client.post(address, "{", "application/json").status_code == 429
    assert client.get(address).status_code == 200


def test_every_limit_is_of_an_address_that_exists(settings):
    assert {name for _, name in rate_limits.LIMITS} <= {
        name for name, _ in addresses(get_resolver())
    }
    assert set(rate_limits.LIMITS.values()) | {rate_limits.GUESSES} == set(settings.RATE_LIMITS)


def send(client, secret, path="/api/v1/runs", address="192.0.2.1", scheme="Bearer "):
    headers = {"authorization": f"{scheme}{secret}"}
    return client.get(path, headers=headers, REMOTE_ADDR=address)


def test_guessed_tokens_are_rate_limited_and_a_valid_one_works(client, cast, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (3, 3600.0)}
    right = a_token(cast.bob, cast.project, Scope.RUNS_READ)
    assert send(client, right).status_code == 200
    wrong = [send(client, f"grove_{n}") for n in range(5)]
    assert [response.status_code for response in wrong] == [401, 401, 401, 429, 429]
    assert wrong[-1]["Content-Type"] == "application/problem+json"
    assert 600 <= int(wrong[-1]["Retry-After"]) <= 1200
    assert [send(client, right).status_code for _ in range(5)] == [200] * 5
    assert send(client, "grove_6", address="192.0.2.2").status_code == 401, "others go on"


def test_guessed_links_are_rate_limited_and_a_valid_one_works(client, cast, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (4, 3600.0)}
    run, _ = a_held_run(cast)
    _, path = create_share(run, cast.alice, timedelta(days=1))
    right = path.strip("/").split("/")[-1]
    urls = "/shared/{}/", "/shared/comparison/{}/", "/api/v1/shared/{}/state"
    wrong = [*urls, "/api/v1/shared/comparison/{}"]

    def look(url, secret, address="192.0.2.1"):
        return client.get(url.format(secret), REMOTE_ADDR=address)

    missing = f"/api/v1/shared/{right}/trees/9"
    assert [look(missing, right).status_code for _ in range(6)] == [404] * 6, "no guess"
    assert [look(url, "x" * 43).status_code for url in wrong] == [404] * 4
    for url in wrong:
        result = look(url, "x" * 43)
        assert result.status_code == 429 and 300 <= int(result["Retry-After"]) <= 900
        is_rest = url.startswith("/api/")
        assert result["Content-Type"].startswith("application/problem" if is_rest else "text/html")
    for url in (urls[0], urls[2]):
        assert look(url, right).status_code == 200
        assert look(url, "x" * 43, "192.0.2.2").status_code == 404, "others go on"


def keys():
    with connection.cursor() as cursor:
        cursor.execute("SELECT caller FROM accounts_allowance")
        return {caller for (caller,) in cursor.fetchall()}


def test_no_header_lets_a_limited_caller_pass_as_another(client, cast, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "tokens": (1, 3600.0), "exports": (1, 3600.0)}
    run, _ = a_held_run(cast)
    path = f"/api/v1/runs/{run.pk}/events"
    secret = a_token(cast.bob, cast.project, Scope.RUNS_READ)
    spellings = ["Bearer ", "bearer ", "BEARER ", "bEaReR ", "Bearer  ", "Bearer   "]
    results = [send(client, secret, path, scheme=scheme).status_code for scheme in spellings]
    assert results == [200] + [429] * 5

    client.force_login(cast.mia)
    values = ["Basic eA==", "Bearer", "Token x", "x", *(f"Bearer grove_{n}" for n in range(29))]

    def make(value):
        spoofed = {"x-forwarded-for": f"198.51.100.{len(value)}", "forwarded": f"for={value}"}
        return client.post("/tokens/", headers={"authorization": value, **spoofed}).status_code

    assert make("first") == 422
    assert [make(value) for value in values] == [429] * 33
    schemes = [value for value in values if not value.startswith("Bearer g")]
    assert client.get(path).status_code == 200, "Mia's first by REST"
    for value in schemes[:1] + schemes[2:]:  # another scheme is no token: Mia's session applies
        assert client.get(path, headers={"authorization": value}).status_code == 429

    token = ApiToken.objects.get()
    assert keys() == {f"exports:token {token.pk}", f"exports:all tokens of user {cast.bob.pk}",
                      f"exports:user {cast.mia.pk}", f"tokens:user {cast.mia.pk}"}  # fmt: skip


def test_wrong_tokens_are_counted_by_their_address_and_make_no_keys_of_their_own(client, cast):
    run, _ = a_held_run(cast)
    for n in range(5):
        result = send(
            client, f"grove_{n}", f"/api/v1/runs/{run.pk}/events", f"2001:db8:1:2::{n + 1}"
        )
        assert result.status_code == 401
    assert keys() == {"guesses:address 2001:db8:1:2::/64", "exports:address 2001:db8:1:2::/64"}


@pytest.mark.parametrize(
    "address, counted",
    [("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("fe80::1%eth0", "fe80::/64"),
     ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("", "unknown"), ("x" * 9000, "unknown")],
)  # fmt: skip
def test_an_address_is_counted_as_its_network(address, counted):
    assert rate_limits.counted_address(address) == counted


def test_names_that_are_tried_by_the_hundred_clear_no_count_of_signing_in(db):
    cache.set("count-of-an-address", 5)
    for n in range(400):
        cache.set(f"name-{n}", 1)
    assert cache.get("count-of-an-address") == 5


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("trusted, counted", [([], "127.0.0.1"), (["127.0.0.1"], "203.0.113.9")])
def test_only_a_proxy_that_is_trusted_says_where_a_request_comes_from(settings, trusted, counted):
    settings.TRUSTED_PROXIES = trusted
    headers = {
        "authorization": "Bearer grove_wrong",
        "x-forwarded-for": "198.51.100.1, 203.0.113.9",
        "forwarded": "for=198.51.100.2",
        "x-real-ip": "198.51.100.3",
    }
    with a_server() as served, httpx.Client(timeout=10 * patience()) as client:
        response = client.get(f"http://127.0.0.1:{served.port}/api/v1/runs", headers=headers)
        assert response.status_code == 401
        client.close()
        served.wait_until_idle()
    assert keys() == {f"guesses:address {counted}"}
