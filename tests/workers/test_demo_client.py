"""The client counts what a broken stream would do to it."""

from __future__ import annotations

import asyncio

from tests.e2e.stack import free_port
from workers.demo_client import DemoClient


def a_client():
    seen = []
    client = DemoClient("http://localhost:1", "", "run", seen.append)
    return client, seen


def batch(*seqs, kind="log.line"):
    events = [[seq, 1000 * seq, kind, {"tree": 7, "message": "x"}] for seq in seqs]
    return {"type": "batch", "sid": 1, "from": seqs[0], "to": seqs[-1], "events": events}


def test_contiguous_events_are_delivered_with_their_place():
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


def test_it_asks_only_for_what_comes_after_its_last_event():
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


def test_it_signs_in_once_a_web_that_was_killed_is_there_again():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nSet-Cookie: sessionid=abc\r\nContent-Length: 0\r\n"
        writer.write(head + b"Connection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def walk():
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        client = DemoClient(address, f"{address}/link", "run", print)
        signing = asyncio.create_task(client._signed_in())
        while not client.reconnects:
            await asyncio.sleep(0.01)
        async with await asyncio.start_server(answer, "127.0.0.1", port):
            return await asyncio.wait_for(signing, 20)

    assert asyncio.run(walk()) == "sessionid=abc"
