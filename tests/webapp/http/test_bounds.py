"""Tests of bounds on web work: what strangers write, send and open costs others little.

Seconds are CPU time of the process, with a margin: each case took ten times as long without its
bound.
"""

from __future__ import annotations

import gc
import time
from contextlib import ExitStack, contextmanager

import httpx
import numpy as np
import pytest
from django.urls import reverse

from engine.problems.paired import paired_bootstrap, paired_normal
from tests.helpers.builders import a_cast, a_held_run, a_run, a_token, an_event, some_events
from tests.helpers.large import large_but
from tests.helpers.waiting import eventually, patience
from tests.webapp.telemetry.stream_server import Client, a_server
from webapp.accounts.models import Scope
from webapp.comments.models import Comment
from webapp.comments.selectors import PAGE_ROWS
from webapp.comments.services import LONGEST
from webapp.comparison.comparison import pairs
from webapp.comparison.intervals import MOST_FIGURES, RESAMPLES, Budget, interval
from webapp.experiments.services import mark_finished
from webapp.markdown import MOST_CELLS, render
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.stream.protocol import Close
from webapp.telemetry.stream.stream_slots import MAX_PER_TOKEN, MAX_PER_USER, open_streams

WIDE = ("|a" * 1250 + "\n" + "|-" * 1250 + "\n" + "|\n" * 2400)[:LONGEST]
"""A table of 65,000 cells, most of them implied."""

NO_REUSE = httpx.Limits(max_keepalive_connections=0)


@contextmanager
def cheap(seconds: float, clock=time.process_time):
    """Without the garbage collector, whose cost is that of every object of the whole suite."""
    gc.collect()
    gc.disable()
    began = clock()
    try:
        yield
        spent = clock() - began
    finally:
        gc.enable()
    assert spent < seconds, f"took {spent:.1f} s of the process, {seconds} s at most"


def test_a_page_of_comments_with_tables_is_small_and_soon_there(client, cast):
    run = a_run(cast)
    texts = [f"{index}\n\n{WIDE}"[:LONGEST] for index in range(20)]
    Comment.objects.bulk_create(Comment(run=run, author=cast.bob, text=text) for text in texts)
    client.force_login(cast.vera)
    with cheap(5):
        page = client.get("/comments/", {"run": [run.pk]})
    assert len(page.content) < 1_000_000 and page.content.count(b"<td") == 0
    assert b"|a|a|a" in page.content  # shown as plain text
    response = client.get("/api/v1/comments", {"run": [run.pk]})
    assert len(response.content) < 2_000_000 and len(response.json()["comments"]) == 20


TEXTS = [
    WIDE, "-|-\n" * 2500, "[" * LONGEST, "![" * 5000, "- - \n" * 2000, "> " * 5000, "*_" * 5000,
    "|a|\n|-|\n|b|\n\n" * 700, "> |a|b\n> |-|-\n" + "> |\n" * 2400, "<" * LONGEST,
]  # fmt: skip


@pytest.mark.parametrize("text", large_but([WIDE, TEXTS[4], TEXTS[-1]], TEXTS))
def test_no_text_becomes_much_more_html_than_it_is(text):
    with cheap(1, time.thread_time):
        html = render(text[:LONGEST])
    assert len(html) < 5 * LONGEST and html.count("<td") + html.count("<th>") <= MOST_CELLS


def test_a_table_of_a_usual_size_is_a_table():
    rows = "\n".join(f"| {n} | {n * n} |" for n in range(200))
    assert render(f"| n | square |\n|---|---|\n{rows}").count("<td>") == 400


def test_a_thread_is_walked_in_pages(client, cast):
    run = a_run(cast)
    texts = [f"number {n:03}" for n in range(PAGE_ROWS + 3)]
    Comment.objects.bulk_create(Comment(run=run, author=cast.bob, text=text) for text in texts)
    client.force_login(cast.vera)
    newest = client.get("/comments/", {"run": [run.pk]})
    assert [one.text for one in newest.context["thread"]] == texts[3:]
    before = newest.context["earlier"]
    assert f"before={before}" in newest.content.decode()
    first = client.get("/comments/", {"run": [run.pk], "before": before})
    assert [one.text for one in first.context["thread"]] == texts[:3]
    assert first.context["earlier"] is None and b"Earlier comments" not in first.content
    assert client.get("/comments/", {"run": [run.pk], "before": "x"}).status_code == 400


def evaluated(cast, contents, outcomes):
    run, fencing = a_held_run(cast)
    payload = {"step": 1, "split": "test", "contents": contents, "outcomes": outcomes}
    ingest(run.pk, fencing, [an_event(1, "eval.outcomes", **payload)])
    run.refresh_from_db()
    return run


def test_figures_of_strangers_are_compared_in_bounded_time(client, cast):
    rng = np.random.default_rng(0)
    many = [f"{index:x}" for index in range(60_000)]
    runs = [
        evaluated(cast, many, {name: rng.random(60_000).round(3).tolist() for name in "abcd"})
        for _ in range(2)
    ]
    client.force_login(cast.vera)
    with cheap(3):
        body = client.get("/api/v1/comparison", {"run": [run.pk for run in runs]}).json()
    figures = body["evaluations"][0]["figures"]
    assert [one["problems"] for one in figures] == [60_000] * 4
    assert all(one["low"] < one["difference"] < one["high"] for one in figures)
    assert all(one["high"] - one["low"] < 0.01 for one in figures)


def test_a_comparison_has_one_bootstrap_budget_and_caches_its_draws():
    rng = np.random.default_rng(1)
    before, after = rng.random((2, 100))
    budget = Budget(100 * RESAMPLES)
    drawn = interval(before, after, budget)
    assert drawn == paired_bootstrap(before, after, np.random.default_rng(0)) and not budget.left
    assert interval(before, after, budget) == drawn
    assert interval(after, before, budget) == paired_normal(after, before)


def test_of_one_pair_so_many_figures_are_compared(cast):
    runs = [evaluated(cast, ["a", "b"], {f"f{n}": [0.0, n] for n in range(200)}) for _ in "ab"]
    (pair,) = pairs(runs, "test")
    assert [one.figure for one in pair.figures] == [f"f{n}" for n in range(MOST_FIGURES)]


def test_the_normal_interval_is_what_the_bootstrap_tends_to():
    rng = np.random.default_rng(2)
    a, b = rng.random(2000), rng.random(2000) + 0.1
    drawn, known = paired_bootstrap(a, b, rng), paired_normal(a, b)
    assert known.difference == drawn.difference
    assert (known.low, known.high) == pytest.approx((drawn.low, drawn.high), abs=5e-4)
    with pytest.raises(ValueError, match="same problems"):
        paired_normal([1.0], [])


def test_the_bootstrap_draws_in_chunks_what_it_drew_one_by_one():
    values = np.random.default_rng(3).normal(size=999)
    rng, means = np.random.default_rng(0), []
    for _ in range(600):
        means.append(values[rng.integers(0, 999, 999)].mean())
    result = paired_bootstrap(np.zeros(999), values, np.random.default_rng(0), resamples=600)
    tail = (1 - 0.95) / 2
    assert (result.low, result.high) == tuple(np.quantile(means, [tail, 1 - tail]))


@pytest.mark.django_db(transaction=True)
def test_a_token_a_user_and_a_session_hold_so_many_event_streams_at_once():
    cast = a_cast()
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 2))
    secrets = [a_token(cast.vera, cast.project, Scope.RUNS_READ) for _ in range(3)]
    with a_server() as served, httpx.Client(timeout=20 * patience(), limits=NO_REUSE) as http:
        url = f"http://127.0.0.1:{served.port}/api/v1/runs/{run.pk}/events"

        def tail(secret):
            headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}
            return http.stream("GET", url, headers=headers)

        def refused(secret):
            with tail(secret) as answer:
                assert answer.status_code == 429 and answer.headers["Retry-After"]
                return answer.read().decode()

        with ExitStack() as held:
            streams = [held.enter_context(tail(secrets[0])) for _ in range(MAX_PER_TOKEN)]
            assert {one.status_code for one in streams} == {200}
            assert "20 event streams at once per token" in refused(secrets[0])
            more = MAX_PER_USER - MAX_PER_TOKEN
            streams += [held.enter_context(tail(secrets[1])) for _ in range(more)]
            assert {one.status_code for one in streams} == {200}
            assert "40 event streams at once per user" in refused(secrets[2])
            other = a_token(cast.bob, cast.project, Scope.RUNS_READ)
            assert held.enter_context(tail(other)).status_code == 200
        eventually(
            lambda: open_streams(cast.vera) == 0 and open_streams(cast.bob) == 0,
            "the streams to end",
        )
        with tail(secrets[0]) as again:
            assert again.status_code == 200
        mark_finished(run.pk, fencing)
        served.wait_until_idle()


@pytest.mark.django_db(transaction=True)
def test_streams_and_sockets_are_limited_per_address(settings):
    settings.STREAMS_PER_ADDRESS, settings.TRUSTED_PROXIES = 3, ["127.0.0.1"]
    cast = a_cast()
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 2))
    users = {one: a_token(one, cast.project, Scope.RUNS_READ) for one in (cast.vera, cast.bob,
                                                                         cast.mia)}  # fmt: skip
    crowded, other = "2001:db8::1", "2001:db8:0:1::1"

    def headers(user, address):
        return {"Authorization": f"Bearer {users[user]}", "X-Forwarded-For": address}

    with a_server() as served, httpx.Client(timeout=20 * patience(), limits=NO_REUSE) as http:
        url = f"http://127.0.0.1:{served.port}/api/v1/runs/{run.pk}/events"

        def tail(user, address):
            error = {**headers(user, address), "Accept": "text/event-stream"}
            return http.stream("GET", url, headers=error)

        def a_socket(user, address):
            return Client(served.port, None, additional_headers=headers(user, address))

        with ExitStack() as held:
            for user in (cast.vera, cast.bob):
                assert held.enter_context(tail(user, crowded)).status_code == 200
            third = held.enter_context(a_socket(cast.mia, crowded))
            third.say(type="hello", v=1)
            assert third.hear()["type"] == "welcome"
            with tail(cast.mia, "2001:db8::2") as refused:  # same network
                assert (refused.status_code, refused.headers["Retry-After"]) == (429, "10")
                error = refused.read().decode()
                assert "3 event streams and sockets at once per address" in error
            with a_socket(cast.bob, crowded) as late:
                assert late.hear_of("bye")["code"] == Close.TOO_MANY
            assert held.enter_context(tail(cast.mia, other)).status_code == 200
            with a_socket(cast.mia, other) as elsewhere:
                elsewhere.say(type="hello", v=1)
                assert elsewhere.hear()["type"] == "welcome"
        eventually(
            lambda: open_streams(cast.vera) + open_streams(cast.bob) == 0, "the streams to end"
        )
        with tail(cast.mia, crowded) as again:
            assert again.status_code == 200
        mark_finished(run.pk, fencing)
        served.wait_until_idle()


def test_the_page_of_a_comparison_says_so_for_figures_that_do_not_fit(client, cast):
    fits = evaluated(cast, ["a", "b"], {"pass@1/oak": [1.0, 0.0]})
    short = evaluated(cast, ["a", "b"], {"pass@1/oak": [1.0]})
    client.force_login(cast.vera)
    page = client.get(reverse("compare"), {"run": [fits.pk, short.pk]})
    assert page.status_code == 200 and b"no common problems or agents" in page.content
