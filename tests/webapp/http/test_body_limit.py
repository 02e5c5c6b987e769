"""Tests of request bodies: too long ones are not read, with or without a declared length.

A body that does not match its declared length has no effect.
"""

import json
import socket

import pytest

from tests.helpers.builders import a_cast, a_token
from tests.webapp.telemetry.stream_server import a_server
from webapp.accounts.models import Scope
from webapp.artifacts.models import Upload
from webapp.http.body_limit import longest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server() as served:
        yield served


def answered(served, head: str, body: bytes) -> bytes:
    """Everything that the server sends before it closes the connection."""
    with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
        request = f"POST /api/v1/uploads HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n"
        connection.sendall(request.encode())
        try:
            for start in range(0, len(body), 1 << 16):
                connection.sendall(body[start : start + (1 << 16)])
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except (BrokenPipeError, ConnectionResetError):
            return b""


def test_an_announced_length_is_refused_before_a_byte_comes(served):
    answer = answered(served, f"Content-Length: {10 << 40}", b"")
    assert answer.startswith(b"HTTP/1.1 413") and b"too long" in answer


def test_a_body_without_a_length_breaks_off(served):
    piece = b"%x\r\n%s\r\n" % (1 << 20, b"x" * (1 << 20))
    body = piece * ((longest() >> 20) + 4)
    answer = answered(served, "Transfer-Encoding: chunked", body)
    assert not answer.startswith(b"HTTP/1.1 2") and b"401" not in answer.split(b"\r\n")[0]
    served.wait_until_idle()


@pytest.fixture
def bob(served, transactional_db, var_directory):
    """A request with Bob's token that begins an upload: the start of its head, and its body."""
    cast = a_cast()
    token = a_token(cast.bob, cast.project, Scope.DATASETS_WRITE)
    body = {"project": cast.project.pk, "kind": "dataset", "name": "a.jsonl", "size": 3}
    head = f"Authorization: Bearer {token}\r\nConnection: close\r\n"
    head += "Content-Type: application/json\r\n"
    yield head, json.dumps(body).encode()
    served.wait_until_idle()


def spoken(served, head: str, body: bytes, *, ends: bool = False) -> list[bytes]:
    """Status lines of all responses until the server closes; `ends` closes our side after the
    body."""
    with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
        request = f"POST /api/v1/uploads HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n"
        connection.sendall(request.encode() + body)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def test_a_body_that_is_as_long_as_it_says_is_taken(served, bob):
    head, body = bob
    assert spoken(served, f"{head}Content-Length: {len(body)}", body) == [b"HTTP/1.1 201 Created"]
    assert spoken(served, f"{head}Transfer-Encoding: chunked", chunked(body))[0].endswith(
        b"Created"
    )
    assert Upload.objects.count() == 2


def test_a_body_that_ends_before_its_length_does_nothing(served, bob):
    head, body = bob
    result = spoken(served, f"{head}Content-Length: {len(body) + 500}", body, ends=True)
    assert not any(line.startswith(b"HTTP/1.1 2") for line in result)
    assert not Upload.objects.exists()


def test_a_body_that_goes_on_after_its_length_does_nothing(served, bob):
    head, body = bob
    result = spoken(served, f"{head}Content-Length: {len(body) - 1}", body)
    assert result[0].startswith(b"HTTP/1.1 4") and not any(b" 2" in line[8:11] for line in result)
    assert not Upload.objects.exists()


@pytest.mark.parametrize(
    "lengths",
    [
        "Content-Length: {0}\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Content-Length: {0}\r\nContent-Length: 4",
        "Content-Length: {0}, 4",
        "Content-Length: -{0}",
        "Content-Length: +{0}",
        "Content-Length: {0}_0",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
    ],
)
@pytest.mark.parametrize("pieces", [True, False], ids=["in chunks", "plain"])
def test_a_length_that_can_be_read_in_two_ways_is_refused(served, bob, lengths, pieces):
    head, body = bob
    sent = chunked(body) if pieces else body
    result = spoken(served, head + lengths.format(len(sent)), sent)
    assert result and result[0][9:12] in (b"400", b"501"), result
    assert len(result) == 1, "nothing behind it is taken for another request"
    assert not Upload.objects.exists()
