"""Tests of connections that wait for their client: each has a deadline, and none blocks others."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import httpx
import pytest
from django.db import connection

from tests.helpers.builders import a_held_run, store
from tests.helpers.datasets import stored_version
from tests.helpers.ports import port_of
from tests.helpers.waiting import eventually, patience
from tests.webapp.datasets.test_upload_memory import resident
from tests.webapp.telemetry.stream_server import Client, a_server, a_session
from webapp.artifacts import store as artifacts
from webapp.http.connections import Connections, Limits, Phase
from webapp.http.server import limits_for
from workers.local.service_commands import web_command

pytestmark = pytest.mark.django_db(transaction=True)

PAGE_SECONDS = 5.0
QUICK = Limits(
    most=40,
    most_per_address=1000,
    head_seconds=1.0,
    body_seconds=1.0,
    send_seconds=1.0,
    socket_close_seconds=0.5,
)
POST = b"POST /tokens/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def half_open(port, number, sent=b""):
    """`number` connections that have sent no whole request."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
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
    with a_server(QUICK) as served, half_open(served.port, 3 * QUICK.most, sent) as opened:
        assert status(served.port, "/", cast.bob) == 200
        assert len(served.server.server_state.connections) <= QUICK.most
        assert all(is_closed(one, PAGE_SECONDS) for one in opened)
        served.wait_until_idle()


@pytest.mark.parametrize(
    "trusted, status", [([], 301), (["127.0.0.1"], 200), (["10.0.0.0/8"], 301)]
)
def test_only_a_proxy_that_is_trusted_says_that_a_request_came_by_tls(settings, trusted, status):
    settings.TRUSTED_PROXIES, settings.SECURE_SSL_REDIRECT = trusted, True
    with a_server(QUICK) as served, httpx.Client(timeout=PAGE_SECONDS) as client:
        headers = {"x-forwarded-proto": "https", "forwarded": "proto=https"}
        address = f"http://127.0.0.1:{served.port}/healthz"
        assert client.get(address, headers=headers).status_code == status


@pytest.mark.parametrize(
    "head, more", [(b"", b"GET / HTTP/1.1\r\nX: " + 60 * b"y"), (POST % 100_000, 60 * b"y")]
)
def test_a_request_that_trickles_in_is_closed_although_bytes_keep_coming(head, more):
    with a_server(QUICK) as served, half_open(served.port, 1, head) as (one,):
        began = time.monotonic()
        for byte in more:
            try:
                one.sendall(bytes([byte]))
            except OSError:
                break
            if is_closed(one, 0.1):
                break
        assert 0.9 < time.monotonic() - began < 3


def test_a_body_that_comes_steadily_may_take_longer_than_its_first_deadline(cast):
    limits = replace(QUICK, body_seconds=0.5, body_bytes_per_second=1000)
    body = b"x" * 3000
    session = a_session(cast.bob)
    head = b"POST /nowhere/ HTTP/1.1\r\nHost: localhost\r\nCookie: sessionid=%s\r\n"
    head = head % session.session_key.encode() + b"Content-Length: %d\r\n\r\n" % len(body)
    with a_server(limits) as served, half_open(served.port, 1, head) as (one,):
        pieces = threading.Event()
        for start in range(0, len(body), 300):
            one.sendall(body[start : start + 300])
            pieces.wait(0.15)
        one.settimeout(PAGE_SECONDS)
        assert one.recv(12) == b"HTTP/1.1 404", "answered, not cut off"
        served.wait_until_idle()


def test_a_client_that_does_not_read_its_response_is_closed():
    with a_server(QUICK) as served:
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
            eventually(lambda: served.server.server_state.connections, "the connection")
            eventually(lambda: not served.server.server_state.connections, "its end")
        served.wait_until_idle()


def test_a_slow_download_buffers_one_block_and_is_closed(cast, var_directory):
    readers, size = 16, 48 << 20
    version = stored_version(cast)
    version.artifact = artifacts.put(os.urandom(1 << 20) for _ in range(size >> 20))
    version.save()
    path = f"/api/v1/datasets/versions/{version.pk}/content"
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: sessionid="
    request = f"{request}{a_session(cast.bob).session_key}\r\n\r\n".encode()
    with a_server(QUICK) as served, ExitStack() as stack:
        assert status(served.port, "/", cast.bob) == 200
        before, opened = resident("VmRSS"), []
        for _ in range(readers):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", served.port))
            one.sendall(request)
            opened.append(one)
        assert all(one.recv(12) == b"HTTP/1.1 200" for one in opened)
        assert status(served.port, "/", cast.bob) == 200
        grown = resident("VmRSS") - before
        assert grown < readers * (6 << 20), f"{grown >> 20} MiB for {readers} readers"
        eventually(lambda: not served.server.server_state.connections, "its end")
        served.wait_until_idle()


def test_requests_on_one_connection_and_a_long_stream_outlast_every_deadline(cast):
    run, fencing = a_held_run(cast)
    limits = replace(QUICK, head_seconds=0.4, body_seconds=0.4, send_seconds=0.4)
    session = a_session(cast.bob)
    with a_server(limits) as served, Client(served.port, session) as socket_client:
        assert socket_client.follow(run)["type"] == "subscribed"
        cookies = {"sessionid": session.session_key}
        address = f"http://127.0.0.1:{served.port}"
        with httpx.Client(base_url=address, timeout=PAGE_SECONDS, cookies=cookies) as client:
            stream = f"/api/v1/runs/{run.pk}/events"
            headers = {"accept": "text/event-stream"}
            with client.stream("GET", stream, headers=headers) as events:
                assert events.status_code == 200
                for _ in range(3):
                    assert client.get("/").status_code == 200
                    threading.Event().wait(0.3)
                store(run, fencing, 1)
                assert any("line 1" in line for line in events.iter_lines())
                socket_client.hear_until(1)
        socket_client.close()
        served.wait_until_idle()


def test_refused_websockets_free_their_slots_at_once():
    limits = replace(QUICK, most=8, socket_close_seconds=30.0)
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
    with a_server(replace(QUICK, most=2)) as served, ExitStack() as stack:
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
    parts = connection.settings_dict
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{parts['USER']}@/{parts['NAME']}?host={parts['HOST']}",
        "GROVE_VAR": str(tmp_path),
        "GROVE_CONNECTIONS": "150",
        "GROVE_SECRET_KEY": "a key of the test that is long enough",
    }
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    command = ["sh", "-c", 'ulimit -Sn 100; exec "$@"', "sh", *web_command(0)]
    web = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        port = port_of(web)
        assert resource.prlimit(web.pid, resource.RLIMIT_NOFILE)[0] == min(hard, 1 << 17)
        with half_open(port, 400) as opened:
            assert status(port, "/healthz") == 200
            assert sum(is_closed(one, 0.01) for one in opened[:200]) == 200
    finally:
        web.terminate()
        assert web.wait(20 * patience()) is not None


def test_a_signed_in_websocket_opens_despite_half_open_connections(cast):
    run, _ = a_held_run(cast)
    with a_server(QUICK) as served, half_open(served.port, 2 * QUICK.most):
        with Client(served.port, a_session(cast.bob)) as client:
            assert client.follow(run)["type"] == "subscribed"
        served.wait_until_idle()
