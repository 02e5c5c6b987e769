"""HTTP clients for servers of other people: keys, and proxies of the environment."""

from __future__ import annotations

import ipaddress
import os
import ssl
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

Kind = TypeVar("Kind", httpx.Client, httpx.AsyncClient)

_VARIABLES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY"


def connected(kind: type[Kind], address: str, **options: Any) -> Kind:
    """Returns a client for the server at `address`. A server of this machine is never reached
    through a proxy, whatever the environment says.

    Raises:
        ValueError: the environment names a proxy that cannot be used.
    """
    if is_loopback(address):
        # The proxies are ignored with the whole environment; certificates of SSL_CERT_FILE are not.
        plain = not address.startswith("https:")
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else ssl.create_default_context()
        return kind(trust_env=False, verify=verify, **options)
    try:
        return kind(**options)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise ValueError(
            f"the proxy that the environment names ({_VARIABLES}) cannot be used: {error}; name "
            "an http:// proxy, unset the variable, or for SOCKS: pip install socksio"
        ) from None


def is_loopback(address: str) -> bool:
    """Returns whether an address is one of this machine: localhost, 127.0.0.0/8 or ::1."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def secret_of(variable: str) -> str:
    """Returns the key or token of a variable, without the blanks and line ends that a mounted file
    has around it; "" if it is unset.

    Raises:
        ValueError: a character of it cannot be sent; the message does not show the value.
    """
    secret = os.environ.get(variable, "").strip()
    for place, character in enumerate(secret, 1):
        if not "!" <= character <= "~":
            raise ValueError(
                f"{variable}: its character {place} of {len(secret)} cannot be part of a key; "
                "copy the key again"
            )
    return secret
