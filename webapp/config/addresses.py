"""Where this site answers: its address for people, and the host that its own probes name."""

from __future__ import annotations

import socket

from django.conf import settings

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_PROBE_SECONDS = 0.5


def site_address(port: int) -> str:
    """Returns the address at which a browser reaches the site: that of the proxy with GROVE_HTTPS,
    which is on the port of https; else this machine's, if the site answers to its name."""
    host = allowed_host()
    if settings.GROVE_HTTPS:
        return f"https://{host}"
    return f"http://{_local_name(host, port)}:{port}"


def allowed_host() -> str:
    """Returns a host to which the site answers; not one of this machine, with GROVE_HTTPS, if there
    is another one."""
    hosts = [host.removeprefix(".") for host in settings.ALLOWED_HOSTS if host != "*"]
    local = [host for host in _LOCAL if host in hosts or "*" in settings.ALLOWED_HOSTS]
    others = [host for host in hosts if host not in _LOCAL]
    chosen = others + local if settings.GROVE_HTTPS else local + others
    return chosen[0] if chosen else "localhost"


def _local_name(host: str, port: int) -> str:
    """Returns a host of this machine; 127.0.0.1 for localhost where another program has the port of
    ::1, which browsers try first."""
    is_known = bool({"127.0.0.1", "*"} & set(settings.ALLOWED_HOSTS))
    return "127.0.0.1" if host == "localhost" and is_known and _listens_on_ipv6(port) else host


def _listens_on_ipv6(port: int) -> bool:
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.settimeout(_PROBE_SECONDS)
            return probe.connect_ex(("::1", port)) == 0
    except OSError:
        return False
