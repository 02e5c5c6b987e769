"""Tests of the address that Grove prints, and of the host that its own probes name."""

import socket

import pytest

from webapp.config.addresses import allowed_host, site_address

LOCAL = ["localhost", "127.0.0.1", "[::1]"]


@pytest.mark.parametrize(
    ("hosts", "https", "host", "address"),
    [
        (LOCAL, False, "localhost", "http://localhost:1"),
        (["127.0.0.1"], False, "127.0.0.1", "http://127.0.0.1:1"),
        (["grove.example.org"], False, "grove.example.org", "http://grove.example.org:1"),
        ([".example.org", "localhost"], False, "localhost", "http://localhost:1"),
        (["*"], False, "localhost", "http://localhost:1"),
        ([*LOCAL, ".example.org"], True, "example.org", "https://example.org"),
        (LOCAL, True, "localhost", "https://localhost"),
        (["*"], True, "localhost", "https://localhost"),
    ],
)
def test_the_address_is_one_to_which_the_site_answers(settings, hosts, https, host, address):
    settings.ALLOWED_HOSTS, settings.GROVE_HTTPS = hosts, https
    assert (allowed_host(), site_address(1)) == (host, address)


@pytest.mark.parametrize(
    ("hosts", "name"), [(LOCAL, "127.0.0.1"), (["*"], "127.0.0.1"), (["localhost"], "localhost")]
)
def test_localhost_of_another_program_on_ipv6_is_not_named(settings, hosts, name):
    settings.ALLOWED_HOSTS = hosts
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        assert site_address(port) == f"http://{name}:{port}"
