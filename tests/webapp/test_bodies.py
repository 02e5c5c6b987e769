"""A body that is too long is not read, whether it says how long it is or not."""

import socket

import pytest

from tests.webapp.stream_server import a_server
from webapp.bodies import longest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server() as served:
        yield served


def answered(served, head: str, body: bytes) -> bytes:
    """All that the server says before it closes the connection."""
    with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
        request = f"POST /api/v1/uploads HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n"
        connection.sendall(request.encode())
        try:
            for start in range(0, len(body), 1 << 16):
                connection.sendall(body[start : start + (1 << 16)])
            return connection.recv(1 << 16)
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
