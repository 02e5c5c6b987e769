"""Proxies of the environment never stand before the servers of this machine."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def except_loopback(environment: MutableMapping[str, str] = os.environ) -> None:
    """Adds this machine to NO_PROXY where the environment names a proxy, for libraries that read it
    themselves: of buckets, of hubs, of sign-in providers. Brackets around IPv6, at which some of
    them end, are removed. Every entry point calls it; child processes inherit it."""
    if not any(environment.get(name) or environment.get(name.upper()) for name in _PROXIES):
        return
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    entries = [_without_brackets(one.strip()) for one in given.split(",") if one.strip()]
    if "*" in entries:
        return
    value = ",".join(dict.fromkeys([*entries, *LOOPBACK]))
    environment["no_proxy"] = environment["NO_PROXY"] = value


def _without_brackets(entry: str) -> str:
    return entry[1:].partition("]")[0] if entry.startswith("[") else entry
