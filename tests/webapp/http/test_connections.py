"""Tests of connections that wait for their client: each has a deadline, and none blocks others.

The deadlines are hours, and tests turn the clock of the server: none comes by itself, however slow
the machine is.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import httpx
import psutil
import pytest
from django.conf import settings
from django.db import connection

from tests.helpers.builders import a_held_run, store
from tests.helpers.datasets import stored_version
from tests.helpers.ports import port_of
from tests.helpers.waiting import eventually, patience
from tests.webapp.telemetry.stream_server import Client, a_server, a_session
from webapp.artifacts import store as artifacts
from webapp.http.connections import Connections, Limits, Phase
from webapp.http.server import limits_for
from workers.local.service_commands import web_command

pytestmark = pytest.mark.django_db(transaction=True)

PAGE_SECONDS = 20.0 * patience()
HOUR = 3600.0
LIMITS = Limits(
    most=40,
    most_per_address=1000,
    head_seconds=HOUR,
    body_seconds=HOUR,
    send_seconds=HOUR,
    socket_close_seconds=HOUR,
)
POST = b"POST /tokens/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def half_open(port, number, sent=b""):
    """`number` connections that have sent no whole request."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), PAGE_SECONDS))
            if sent:
                one.sendall(sent)
            opened.append(one)
        yield opened


def is_closed(one, seconds):
    """Whether the server closes the connection within `seconds`, without sending a byte."""
    one.settimeout(seconds)
    try:
        return one.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def status(port, path, user=None):
    cookies = {"sessionid": a_session(user).session_key} if user else {}
    address = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=address, timeout=PAGE_SECONDS, cookies=cookies) as client:
        return client.get(path).status_code


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a", POST % 1000 + b"name=x"])
def test_half_open_connections_beyond_the_limit_are_closed(cast, sent):
    with a_server(LIMITS) as served, half_open(served.port, 3 * LIMITS.most, sent) as opened:
        assert status(served.port, "/", cast.bob) == 200
        assert len(served.server.server_state.connections) <= LIMITS.most
        served.clock.turn(HOUR)
        assert all(is_closed(one, PAGE_SECONDS) for one in opened)
        served.wait_until_idle()


@pytest.mark.parametrize(
    "trusted, status", [([], 301), (["127.0.0.1"], 200), (["10.0.0.0/8"], 301)]
)
def test_only_a_proxy_that_is_trusted_says_that_a_request_came_by_tls(settings, trusted, status):
    settings.TRUSTED_PROXIES, settings.SECURE_SSL_REDIRECT = trusted, True
    with a_server(LIMITS) as served, httpx.Client(timeout=PAGE_SECONDS) as client:
        headers = {"x-forwarded-proto": "https", "forwarded": "proto=https"}
        address = f"http://127.0.0.1:{served.port}/sign-in/"
        assert client.get(address, headers=headers).status_code == status


@pytest.mark.parametrize(
    "head, more", [(b"", b"GET / HTTP/1.1\r\nX: " + 60 * b"y"), (POST % 100_000, 60 * b"y")]
)
def test_a_request_that_trickles_in_is_closed_although_bytes_keep_coming(head, more):
    with a_server(LIMITS) as served, half_open(served.port, 1, head) as (one,):
        connections = served.server.server_state.connections
        eventually(
            lambda: any(read.cycle or not head for read in list(connections)),
            "the connection, and its head, with which the hour of a body begins",
        )
        for byte in more[:-2]:
            one.sendall(bytes([byte]))
            served.clock.turn(HOUR / len(more))
        assert served.server.server_state.connections, "its hour is not over"
        for byte in more[-2:]:
            one.sendall(bytes([byte]))
            served.clock.turn(HOUR / len(more))
        assert not served.server.server_state.connections
        assert is_closed(one, PAGE_SECONDS)


def test_a_body_that_comes_steadily_may_take_longer_than_its_first_deadline(cast):
    limits = replace(LIMITS, body_bytes_per_second=1)
    body = b"x" * 30_000
    session = a_session(cast.bob)
    head = b"POST /nowhere/ HTTP/1.1\r\nHost: localhost\r\nCookie: sessionid=%s\r\n"
    head = head % session.session_key.encode() + b"Content-Length: %d\r\n\r\n" % len(body)
    with a_server(limits) as served, half_open(served.port, 1, head) as (one,):
        eventually(lambda: served.server.server_state.connections, "the connection")
        for start in range(0, len(body), 3000):
            one.sendall(body[start : start + 3000])
            served.clock.turn(3000.0)
        one.settimeout(PAGE_SECONDS)
        assert one.recv(12) == b"HTTP/1.1 404", "answered, not cut off"
        served.wait_until_idle()


def test_a_client_that_does_not_read_its_response_is_closed():
    with a_server(LIMITS) as served:
        connections = served.server.server_state.connections
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", served.port))
            request = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
            one.setblocking(False)
            try:
                for _ in range(200):
                    one.sendall(request)
            except BlockingIOError:
                pass
            eventually(lambda: any(c.flow.write_paused for c in connections), "its full buffer")
            served.clock.turn(HOUR / 2)
            assert connections, "its hour is not over"
            served.clock.turn(HOUR / 2)
            eventually(lambda: not connections, "its end")
        served.wait_until_idle()


def test_a_slow_download_buffers_one_block_and_is_closed(cast, var_directory):
    readers, size = 20, 48 << 20
    request = a_download(cast, size)
    with a_web_process(var_directory, GROVE_SECRET_KEY=settings.SECRET_KEY) as (web, port):
        assert status(port, "/", cast.bob) == 200
        with slow_readers(port, request, 1):
            assert status(port, "/", cast.bob) == 200
            before = resident(web)
            with slow_readers(port, request, readers):
                assert status(port, "/", cast.bob) == 200
                grown = resident(web) - before
    assert grown < readers * (6 << 20), f"{grown >> 20} MiB for {readers} readers"

    with a_server(LIMITS) as served, slow_readers(served.port, request, 1):
        connections = served.server.server_state.connections
        eventually(lambda: any(c.flow.write_paused for c in connections), "its full buffer")
        served.clock.turn(HOUR)
        eventually(lambda: not connections, "its end")
        served.wait_until_idle()


def resident(process):
    return psutil.Process(process.pid).memory_info().rss


def a_download(cast, size):
    """Bob's request for a stored file of this many bytes."""
    version = stored_version(cast)
    version.artifact = artifacts.put(os.urandom(1 << 20) for _ in range(size >> 20))
    version.save()
    path = f"/api/v1/datasets/versions/{version.pk}/content"
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: sessionid="
    return f"{request}{a_session(cast.bob).session_key}\r\n\r\n".encode()


@contextmanager
def slow_readers(port, request, number):
    """Connections that request a file, read a piece of it and then no more."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            one = stack.enter_context(socket.socket())
            one.settimeout(PAGE_SECONDS)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", port))
            one.sendall(request)
            opened.append(one)
        for one in opened:
            assert one.recv(12) == b"HTTP/1.1 200"
            left = 1 << 17
            while left > 0:
                left -= len(one.recv(4096))
        yield


def test_requests_on_one_connection_and_a_long_stream_outlast_every_deadline(cast):
    run, fencing = a_held_run(cast)
    session = a_session(cast.bob)
    # Nor may uvicorn end them: its keep-alive ends after a day, and it expects no pongs.
    options = {"timeout_keep_alive": 24 * HOUR, "ws_ping_interval": None}
    with a_server(LIMITS, options) as served, Client(served.port, session) as socket_client:
        assert socket_client.follow(run)["type"] == "subscribed"
        cookies = {"sessionid": session.session_key}
        address = f"http://127.0.0.1:{served.port}"
        reused = httpx.Limits(keepalive_expiry=None)
        with httpx.Client(
            base_url=address, timeout=PAGE_SECONDS, cookies=cookies, limits=reused
        ) as client:
            stream = f"/api/v1/runs/{run.pk}/events"
            headers = {"accept": "text/event-stream"}
            with client.stream("GET", stream, headers=headers) as events:
                assert events.status_code == 200
                assert client.get("/").status_code == 200
                before = set(served.server.server_state.connections)
                for _ in range(4):
                    served.clock.turn(HOUR * 3 / 4)
                    assert client.get("/").status_code == 200
                assert before == set(served.server.server_state.connections) and len(before) == 3
                store(run, fencing, 1)
                assert any("line 1" in line for line in events.iter_lines())
                socket_client.hear_until(1)
        socket_client.close()
        served.wait_until_idle()


def test_refused_websockets_free_their_slots_at_once():
    limits = replace(LIMITS, most=8)
    head = (
        b"GET /stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Protocol: grove.v1\r\nAuthorization: Bearer wrong\r\n\r\n"
    )
    with a_server(limits) as served, half_open(served.port, limits.most, head) as opened:
        for one in opened:
            assert one.recv(12) == b"HTTP/1.1 101"
        state = served.server.server_state
        eventually(lambda: not state.tasks, "the sockets to be refused")
        assert len(state.connections) == limits.most, "none has answered the end of its socket"
        assert status(served.port, "/healthz") == 200


def test_with_all_connections_busy_a_new_one_gets_a_retry_response(cast):
    run, _ = a_held_run(cast)
    session = a_session(cast.bob)
    with a_server(replace(LIMITS, most=2)) as served, ExitStack() as stack:
        for _ in range(2):
            one = stack.enter_context(Client(served.port, session))
            assert one.follow(run)["type"] == "subscribed"
        with httpx.Client(timeout=PAGE_SECONDS) as client:
            response = client.get(f"http://127.0.0.1:{served.port}/healthz")
        assert response.status_code == 503 and response.headers["Retry-After"] == "1"
        stack.close()
        served.wait_until_idle()
        assert status(served.port, "/healthz") == 200


class Waiting:
    def __init__(self, connections, address, phase=Phase.HEAD):
        self.address, self.phase, self.dropped = address, phase, False
        self.connections = connections
        connections.enter(self, phase)

    def drop(self):
        self.dropped = True
        self.connections.leave(self, self.phase)


def test_an_address_with_too_many_closes_its_own_and_else_the_longest_waiting_goes():
    connections = Connections(Limits(most=5, most_per_address=2))
    body = Waiting(connections, "192.0.2.1", Phase.BODY)
    first, second, other = (Waiting(connections, f"192.0.2.{n}") for n in (2, 2, 3))
    assert connections.admit("192.0.2.2", 4) and first.dropped
    assert connections.admit("192.0.2.9", 4) and not second.dropped, "there is room"
    assert connections.admit("192.0.2.9", 5) and second.dropped and not other.dropped
    assert connections.admit("192.0.2.9", 5) and other.dropped and not body.dropped
    assert connections.admit("192.0.2.9", 5) and body.dropped, "a body only after the heads"
    assert not connections.admit("192.0.2.9", 5), "nobody waits"
    assert not connections._addresses


def test_there_are_fewer_connections_than_files(capsys):
    assert limits_for(2000, 20_000).most == 2000 and not capsys.readouterr().err
    assert limits_for(2000, 1024).most == 384
    assert "GROVE_CONNECTIONS = 2000, but 1024 files" in capsys.readouterr().err


def test_the_web_process_as_it_is_started_has_the_limits_and_more_files_than_its_shell(
    cast, tmp_path
):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with a_web_process(tmp_path, GROVE_CONNECTIONS="150") as (web, port):
        assert resource.prlimit(web.pid, resource.RLIMIT_NOFILE)[0] == min(hard, 1 << 17)
        with half_open(port, 400) as opened:
            assert status(port, "/healthz") == 200
            assert sum(is_closed(one, 0.01) for one in opened[:200]) == 200


@contextmanager
def a_web_process(var, **variables):
    """(process, port) of `serve_web`, started by a shell that may open a hundred files."""
    parts = connection.settings_dict
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{parts['USER']}@/{parts['NAME']}?host={parts['HOST']}",
        "GROVE_VAR": str(var),
        **variables,
    }
    command = ["sh", "-c", 'ulimit -Sn 100; exec "$@"', "sh", *web_command(0)]
    web = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        yield web, port_of(web)
    finally:
        web.terminate()
        assert web.wait(20 * patience()) is not None
        web.stdout.close()


def test_a_signed_in_websocket_opens_despite_half_open_connections(cast):
    run, _ = a_held_run(cast)
    with a_server(LIMITS) as served, half_open(served.port, 2 * LIMITS.most):
        with Client(served.port, a_session(cast.bob)) as client:
            assert client.follow(run)["type"] == "subscribed"
        served.wait_until_idle()
