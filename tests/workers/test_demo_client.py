"""Tests that the client counts the defects of a broken stream."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.helpers.ports import a_port
from workers.demo.client import DemoClient

pytestmark = pytest.mark.service


def a_client():
    seen = []
    client = DemoClient("http://localhost:1", str, "run", seen.append)
    return client, seen


def batch(*seqs, kind="log.line"):
    events = [[seq, 1000 * seq, kind, {"tree": 7, "message": "x"}] for seq in seqs]
    return {"type": "batch", "sid": 1, "from": seqs[0], "to": seqs[-1], "events": events}


def test_contiguous_events_are_delivered_with_their_position():
    client, seen = a_client()
    client.take(batch(1, 2))
    client.take(batch(3))
    assert (client.delivered, client.gaps, client.doubles, client.last_seq) == (3, 0, 0, 3)
    assert seen[2].tree == 7 and seen[2].time == 3.0 and seen[2].payload == {"message": "x"}


def test_a_gap_counts_every_missing_event():
    client, _ = a_client()
    client.take(batch(1, 2))
    client.take(batch(6))
    assert (client.delivered, client.gaps) == (3, 3)


def test_a_double_is_counted_and_not_applied_again():
    client, seen = a_client()
    client.take(batch(1, 2))
    client.take(batch(2, 3))
    assert (client.delivered, client.doubles, len(seen)) == (3, 1, 3)


def test_the_client_requests_only_later_events():
    client, _ = a_client()
    client.take({"type": "subscribed", "sid": 1, "epoch": "e", "head": 2, "oldest": 1})
    client.take(batch(1, 2))
    assert client._subscription()["after"] == 2 and client._subscription()["epoch"] == "e"


def test_the_first_node_is_timed_once():
    client, _ = a_client()
    client.take(batch(1, kind="node.open"))
    first = client.first_node_at
    client.take(batch(2, kind="node.open"))
    assert first is not None and client.first_node_at == first


def page(status, *headers):
    lines = [f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "Connection: close"]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def signed_in(answers):
    """Returns (cookie, links used) of a client whose first attempts reach no server, and later ones
    these responses in turn (None: the server dies before it responds)."""
    links = []

    async def answer(reader, writer):
        links.append((await reader.readuntil(b"\r\n\r\n")).split()[1].decode())
        if said := answers[min(len(links), len(answers)) - 1]:
            writer.write(said)
            await writer.drain()
        writer.close()

    async def walk():
        address = f"http://127.0.0.1:{a_port()}"
        numbers = itertools.count()
        client = DemoClient(address, lambda: f"{address}/{next(numbers)}", "run", print)
        signing = asyncio.create_task(client._signed_in())
        while not client.reconnects:
            await asyncio.sleep(0.01)
        async with await asyncio.start_server(answer, "127.0.0.1", int(address.split(":")[-1])):
            return await asyncio.wait_for(signing, 20)

    return asyncio.run(walk()), links


COOKIE = page("200 OK", "Set-Cookie: sessionid=abc")


def test_it_signs_in_once_a_web_that_was_killed_is_there_again():
    cookie, links = signed_in([COOKIE])
    assert cookie == "sessionid=abc" and len(links) == 1


@pytest.mark.parametrize("answer", [None, page("410 Gone"), page("503 Service Unavailable")])
def test_a_link_that_was_spent_without_an_answer_is_followed_by_a_new_one(answer):
    """As when the web process is killed between spending the link and answering."""
    cookie, links = signed_in([answer, COOKIE])
    assert cookie == "sessionid=abc"
    assert len(links) == len(set(links)) == 2
