"""Proxies of the environment, for servers of other people; never for those of this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies


def is_loopback(address: str) -> bool:
    """Returns whether an address is one of this machine: localhost, 127.0.0.0/8 or ::1."""
    host = _host(address)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def proxy_for(address: str, named: Mapping[str, str] | None = None) -> str | None:
    """Returns the proxy that the environment names for an address: HTTP_PROXY, HTTPS_PROXY or else
    ALL_PROXY, in either case; None if there is none, NO_PROXY excepts the address, or it is one of
    this machine. `named` are the variables without `_proxy`, as of `urllib.request.getproxies`."""
    proxies = getproxies() if named is None else named
    if is_loopback(address) or is_excepted(address, proxies.get("no", "")):
        return None
    proxy = proxies.get(urlsplit(address).scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def is_excepted(address: str, no_proxy: str) -> bool:
    """Returns whether an entry of NO_PROXY holds for the address: `*`, a name with all below it, an
    IPv4 or IPv6 address, with or without brackets, or a network of them; each with or without a
    port."""
    host, port = _host(address), _port(address)
    return any(
        one == "*" or _matches(host, port, one.lower())
        for one in no_proxy.replace(",", " ").split()
    )


def _matches(host: str, port: int | None, entry: str) -> bool:
    name, its_port = _parts(entry)
    if its_port and its_port != str(port):
        return False
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:
        pass  # one of the two is a name
    name = name.lstrip("*").lstrip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _parts(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":") if rest.startswith(":") else ""
    if entry.count(":") > 1:  # IPv6 without brackets has no port
        return entry, ""
    name, _, port = entry.partition(":")
    return name, port


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _port(address: str) -> int | None:
    parts = urlsplit(address)
    try:
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
