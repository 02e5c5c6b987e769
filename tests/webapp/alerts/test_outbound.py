"""Tests of posting to addresses that people type: inside, hostile, silent, endless."""

from __future__ import annotations

import json
import threading

import pytest

from webapp.alerts.outbound import ANSWER_BYTES, Guard, NotReached, Refused, post

LOCAL = Guard(["127.0.0.0/8"])
INSIDE = (
    "127.0.0.1", "10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0", "224.0.0.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "::1", "::",
    "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "64:ff9b:1::7f00:1", "::ffff:0:127.0.0.1", "fec0::1", "5f00::1", "3fff::1", "2001:db8::1",
    "192.88.99.1",
)  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_no_address_inside_is_connected_to_whoever_names_it(address):
    with pytest.raises(Refused, match="no public address"):
        Guard([]).check(address, 443)
    named = Guard([], resolve=lambda host, port: ["8.8.8.8", address])
    with pytest.raises(Refused):
        named.checked("outside.example", 443, 1.0)


def test_public_addresses_have_a_few_ports_and_allowed_networks_all():
    for address in ("8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"):
        for port in (80, 443, 8080, 8443):
            Guard([]).check(address, port)
        with pytest.raises(Refused, match="port 6379"):
            Guard([]).check(address, 6379)
    Guard(["10.0.0.0/8"]).check("10.1.2.3", 8065)
    Guard(["10.0.0.0/8"]).check("::ffff:10.1.2.3", 8065)
    with pytest.raises(Refused):
        Guard(["10.0.0.0/8"]).check("192.168.1.1", 443)


@pytest.mark.parametrize(
    "url",
    [
        "", "ftp://x.example/", "file:///etc/passwd", "gopher://x.example", "//x.example", "x",
        "https://", "https:///path", "https://user:secret@x.example/", "https://x.example/#a",
        "https://x.example:99999/", "https://x.example/a b", "https://x.example/\r\nHost: y",
        "https://\u0661.example/", "https://[::1/", "http://2130706433/", "http://0x7f000001/",
        "http://127.1/", "http://0177.0.0.1/", "http://127.0.0.0x1/", "http://127.0.0.1./",
        "http://017700000001/", "http://%31%32%37.0.0.1/", "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/", "http://[64:ff9b:1::7f00:1]/", "http://x.example\\@127.0.0.1/",
        "https://127.0.0.1/", "http://[::1]:80/",
        "https://8.8.8.8:22/", f"https://x.example/{'a' * 2000}",
    ],
)  # fmt: skip
def test_an_unusable_address_is_refused_before_anything_is_resolved(url):
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} was resolved")

    with pytest.raises(Refused):
        post(Guard([], resolve), url, b"{}", {})


def test_the_connection_goes_to_the_address_that_was_checked(receiver):
    """The name leads elsewhere at the second look; there is none."""
    port = int(receiver.url.rpartition(":")[2])
    looks = []

    def rebinding(host: str, port: int) -> list[str]:
        looks.append(host)
        return ["127.0.0.1"] if len(looks) == 1 else ["10.255.255.1"]

    answer = post(Guard(["127.0.0.0/8"], rebinding), f"http://hook.example:{port}/ok", b"{}", {})
    assert answer.status == 200 and looks == ["hook.example"]
    ((_, headers, _),) = receiver.taken
    assert headers["host"] == f"hook.example:{port}", "the name is still said"


def test_a_redirect_is_reported_and_not_followed(receiver):
    answer = post(LOCAL, f"{receiver.url}/inside", b"{}", {})
    assert answer.status == 302 and receiver.bodies() == []


def test_a_proxy_of_the_environment_is_not_used(receiver, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert post(LOCAL, f"{receiver.url}/ok", b"{}", {}).status == 200


@pytest.mark.parametrize("path", ["/hang", "/drip"])
def test_a_silent_or_dripping_server_holds_nobody_beyond_the_deadline(receiver, path):
    with pytest.raises(NotReached, match=r"no response within 0\.4 s"):
        post(LOCAL, f"{receiver.url}{path}", b"{}", {}, seconds=0.4)


def test_no_more_than_a_little_of_an_endless_answer_is_read(receiver):
    answer = post(LOCAL, f"{receiver.url}/huge", b"{}", {})
    assert answer.status == 200 and len(answer.text) == ANSWER_BYTES


def test_a_slow_name_server_and_an_unknown_name_are_said(receiver):
    ended = threading.Event()
    slow = Guard([], resolve=lambda host, port: ended.wait(60) and [])
    with pytest.raises(NotReached, match=r"did not answer for x\.example within 0\.1 s"):
        slow.checked("x.example", 443, 0.1)
    ended.set()

    def unknown(host: str, port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(NotReached, match=r"x\.example is not known"):
        Guard([], unknown).checked("x.example", 443, 1.0)
    with pytest.raises(NotReached):
        post(LOCAL, f"{receiver.url}/close", b"{}", {})
    with pytest.raises(NotReached):
        post(LOCAL, "http://127.0.0.1:1/", b"{}", {}, seconds=2)


def test_the_body_and_headers_arrive_as_they_were_sent(receiver):
    body = json.dumps({"title": "caf\u00e9"}).encode()
    post(LOCAL, f"{receiver.url}/ok?token=1", body, {"webhook-id": "7"})
    ((path, headers, taken),) = receiver.taken
    assert (path, taken) == ("/ok?token=1", body)
    assert headers["webhook-id"] == "7" and headers["content-type"] == "application/json"
