"""Outbound HTTP: one POST to an address that a person typed, which may be hostile.

Invariants: the connection goes to an address that was checked, whatever the name resolves to a
moment later; no redirect is followed and no proxy of the environment is used; one deadline holds
for resolving, connecting, sending and reading together; no more than `ANSWER_BYTES` are read.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpcore

from engine.config.deadlines import WEBHOOK

ANSWER_BYTES = 4096
PORTS = frozenset({80, 443, 8080, 8443})
"""Ports of addresses that no network of the operator contains."""
LONGEST = 2000

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_SPECIAL = (ipaddress.ip_network("192.88.99.0/24"), ipaddress.ip_network("3fff::/20"))
"""Not public by IANA's registries of special-purpose addresses, which older versions of Python do
not know. Those of IPv6 outside of `_GLOBAL_UNICAST`, as of a NAT64 of one's own (RFC 8215) and the
former site-local ones, are no public addresses, either."""


class Refused(Exception):
    """Raised for an address to which the site does not post; the message says why."""


class NotReached(Exception):
    """Raised if no response came: the name is unknown, or the server is silent or breaks off."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    text: str
    """The beginning of the body."""


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, in the system's order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


@dataclass(frozen=True)
class Guard:
    """Which addresses may be connected to: public ones at `PORTS`, and all of `networks`."""

    networks: Sequence[str]
    resolve: Resolve = resolved

    def check_url(self, url: str) -> None:
        """Raises `Refused` for an address that can never be posted to. Names are resolved, and
        their addresses checked, only when something is sent."""
        if len(url) > LONGEST or not url.isascii() or not url.isprintable() or " " in url:
            raise Refused(f"give an address of at most {LONGEST} characters, without spaces")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Refused(f"it is no address ({error})") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refused("give an address that starts with https:// or http://")
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise Refused("leave out user, password and fragment")
        literal = _literal(parts.hostname)
        if literal is not None:
            self.check(literal, port or (443 if parts.scheme == "https" else 80))
        elif _is_numeric(parts.hostname):
            raise Refused("write an IP address in its usual form, or give a name")

    def check(self, address: str, port: int) -> None:
        """Raises `Refused` unless this IP address and port may be connected to."""
        ip = ipaddress.ip_address(address.partition("%")[0])
        inner = _unwrapped(ip)
        if any(_within(one, self.networks) for one in {ip, inner}):
            return
        if not (_is_public(ip) and _is_public(inner)):
            raise Refused(
                f"{address} is no public address; the server's operator can allow its network by "
                "GROVE_ALERT_NETWORKS"
            )
        if port not in PORTS:
            named = ", ".join(map(str, sorted(PORTS)))
            raise Refused(f"port {port} is not one of {named}")

    def checked(self, host: str, port: int, seconds: float) -> list[str]:
        """The addresses of the host, all of which may be connected to; waits at most `seconds` for
        the name server.

        Raises:
            Refused: one of them may not be.
            NotReached: the name has none.
        """
        addresses = [host] if _literal(host) else _in_time(self.resolve, host, port, seconds)
        for address in addresses:
            self.check(address, port)
        return list(addresses)


def post(
    guard: Guard, url: str, body: bytes, headers: Mapping[str, str], seconds: float | None = None
) -> Response:
    """Posts the body and returns the response, of any status; waits at most `seconds`, by default
    those of `deadlines.WEBHOOK`.

    Raises:
        Refused: the address may not be posted to.
        NotReached: no response came in time.
    """
    guard.check_url(url)
    seconds = WEBHOOK.seconds if seconds is None else seconds
    backend = _CheckedBackend(guard, time.monotonic() + seconds)
    pool = httpcore.ConnectionPool(
        ssl_context=ssl.create_default_context(), network_backend=backend, max_connections=1
    )
    sent = {"Content-Type": "application/json", "User-Agent": "Grove", **headers}
    try:
        with pool, pool.stream("POST", url, headers=_with_host(url, sent), content=body) as reply:
            return Response(reply.status, _beginning(reply.iter_stream()))
    except Refused:
        raise
    except (httpcore.TimeoutException, TimeoutError):
        raise NotReached(f"no response within {seconds:g} s") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise NotReached(str(error) or type(error).__name__) from None


def _with_host(url: str, headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [("Host", urlsplit(url).netloc), *headers.items()]


def _beginning(pieces: Iterable[bytes]) -> str:
    read = b""
    for piece in pieces:
        read += piece
        if len(read) >= ANSWER_BYTES:
            break
    return read[:ANSWER_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")


class _CheckedBackend(httpcore.SyncBackend):
    """Connects to checked addresses alone, and holds one deadline over everything."""

    def __init__(self, guard: Guard, deadline: float):
        self._guard, self._deadline = guard, deadline

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *args: Any, **kwargs: Any
    ) -> httpcore.NetworkStream:
        addresses = self._guard.checked(host, port, _left(self._deadline))
        failure: Exception = NotReached(f"{host} has no address")
        for address in addresses:
            try:
                stream = super().connect_tcp(address, port, _left(self._deadline), *args, **kwargs)
                return _TimedStream(stream, self._deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class _TimedStream(httpcore.NetworkStream):
    """A stream of which no operation outlives the deadline, so that a server that sends a byte now
    and then holds nobody."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float):
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        secure = self._stream.start_tls(ssl_context, server_hostname, _left(self._deadline))
        return _TimedStream(secure, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _in_time(resolve: Resolve, host: str, port: int, seconds: float) -> Sequence[str]:
    """The name's addresses. The system's resolver has no deadline, so it runs in a thread that is
    left behind if it is too slow."""
    result: list[Sequence[str] | OSError] = []

    def look_up() -> None:
        try:
            result.append(resolve(host, port))
        except (OSError, UnicodeError) as error:
            result.append(error if isinstance(error, OSError) else OSError(str(error)))

    thread = threading.Thread(target=look_up, name=f"resolving {host}", daemon=True)
    thread.start()
    thread.join(seconds)
    if not result:
        raise NotReached(f"the name server did not answer for {host} within {seconds:.1f} s")
    if isinstance(found := result[0], OSError):
        raise NotReached(f"{host} is not known to the name server ({found.strerror or found})")
    return found


def _literal(host: str) -> str | None:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return host


def _is_numeric(host: str) -> bool:
    """Whether resolvers might read it as a number: 2130706433, 0x7f.1, 127.1."""
    last = host.rstrip(".").rpartition(".")[2]
    return last.isdigit() or last.lower().startswith("0x")


def _unwrapped(ip: Address) -> Address:
    """The IPv4 address that an IPv6 address carries traffic to, if it does so; else the same."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if inner := ip.ipv4_mapped or ip.sixtofour:
        return inner
    if ip.teredo:
        return ip.teredo[1]
    if ip in _NAT64 or (ip in _COMPATIBLE and int(ip) > 1):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


def _is_public(ip: Address) -> bool:
    if not ip.is_global or ip.is_multicast or any(ip in one for one in _SPECIAL):
        return False
    return ip.version == 4 or ip in _GLOBAL_UNICAST or ip in _NAT64


def _within(ip: Address, networks: Sequence[str]) -> bool:
    return any(ip in ipaddress.ip_network(one) for one in networks)
