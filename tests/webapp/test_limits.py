"""Limits: counted for each caller apart, by all processes together, and told when to come back."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.urls import get_resolver

from tests.builders import a_held_run, a_token
from tests.security.test_walk import addresses
from webapp import limits
from webapp.accounts.models import Scope
from webapp.limits import Limit
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
def test_processes_that_ask_at_once_get_no_more_than_one_would():
    limit, let_in = Limit("crowd", 10, 3600.0), []

    def ask():
        let_in.extend(limit.spend("all") == 0 for _ in range(5))
        connections["default"].close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE accounts_allowance")
    assert len(let_in) == 30 and sum(let_in) == 10


def test_who_asks_too_often_is_told_when_to_come_back(client, cast, settings):
    run, _ = a_held_run(cast)
    settings.RATE_LIMITS = {
        **settings.RATE_LIMITS,
        "tokens": (1, 60.0),
        "exports": (1, 60.0),
    }
    client.force_login(cast.bob)
    assert [client.post("/tokens/").status_code for _ in range(2)] == [422, 429]
    refused = client.post("/tokens/")
    assert 55 <= int(refused["Retry-After"]) <= 60 and b"Too many requests" in refused.content
    client.force_login(cast.mia)
    assert client.post("/tokens/").status_code == 422, "somebody else is not held up"
    address = f"/api/v1/runs/{run.pk}/events"
    headers = {"authorization": f"Bearer {a_token(cast.bob, cast.project, Scope.RUNS_READ)}"}
    assert client.get(address, headers=headers).status_code == 200
    told = client.get(address, headers=headers)
    assert told.status_code == 429 and told["Content-Type"] == "application/problem+json"
    assert told.json()["status"] == 429 and 55 <= int(told["Retry-After"]) <= 60


@pytest.mark.parametrize("path", ["tokens", "exports", "runs/{run}/shares", "runs/{run}/events"])
def test_what_rest_makes_is_counted_apart_from_what_it_lists(client, cast, settings, path):
    run, _ = a_held_run(cast)
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, (1, 60.0))
    client.force_login(cast.bob)
    address = f"/api/v1/{path.format(run=run.pk)}"
    assert client.post(address, "{", "application/json").status_code in (400, 422)
    assert client.post(address, "{", "application/json").status_code == 429
    assert client.get(address).status_code == 200


def test_every_limit_is_of_an_address_that_exists(settings):
    assert {name for _, name in limits.LIMITS} <= {name for name, _ in addresses(get_resolver())}
    assert set(limits.LIMITS.values()) | {limits.GUESSES} == set(settings.RATE_LIMITS)


def test_who_guesses_tokens_is_held_up_and_not_told_when_right(client, cast, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (3, 60.0)}
    right = a_token(cast.bob, cast.project, Scope.RUNS_READ)

    def ask(secret, address="192.0.2.1"):
        headers = {"authorization": f"Bearer {secret}"}
        return client.get("/api/v1/runs", headers=headers, REMOTE_ADDR=address)

    assert ask(right).status_code == 200, "a right one costs nothing"
    assert [ask(f"grove_{n}").status_code for n in range(5)] == [401, 401, 401, 429, 429]
    told = ask(right)
    assert told.status_code == 429 and 15 <= int(told["Retry-After"]) <= 20
    assert told["Content-Type"] == "application/problem+json"
    assert ask(right, "192.0.2.2").status_code == 200, "others go on"


def test_who_guesses_links_is_held_up_and_not_told_when_right(client, cast, settings):
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (4, 60.0)}
    run, _ = a_held_run(cast)
    _, path = create_share(run, cast.alice, timedelta(days=1))
    right = path.strip("/").split("/")[-1]
    places = "/shared/{}/", "/shared/comparison/{}/", "/api/v1/shared/{}/state"
    wrong = [*places, "/api/v1/shared/comparison/{}"]

    def ask(place, secret, address="192.0.2.1"):
        return client.get(place.format(secret), REMOTE_ADDR=address)

    assert [ask(places[0], right).status_code for _ in range(6)] == [200] * 6
    missing = f"/api/v1/shared/{right}/trees/9"
    assert [ask(missing, right).status_code for _ in range(6)] == [404] * 6, "no guess"
    assert [ask(place, "x" * 43).status_code for place in wrong] == [404] * 4
    for place in wrong:
        told = ask(place, "x" * 43)
        assert told.status_code == 429 and 10 <= int(told["Retry-After"]) <= 15
    for place in (places[0], places[2]):
        assert ask(place, right).status_code == 429, "not told whether it is right"
        assert ask(place, right, "192.0.2.2").status_code == 200, "others go on"
