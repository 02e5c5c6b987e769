"""HTTP connections to a Grove server: its token, and proxies of the environment."""

from __future__ import annotations

import ipaddress
import ssl
from typing import Any
from urllib.parse import urlsplit

import httpx

_VARIABLES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY"


def connected(address: str, **options: Any) -> httpx.Client:
    """Returns a client for the server at `address`. A server of this machine is never reached
    through a proxy, whatever the environment says.

    Raises:
        ValueError: the environment names a proxy that cannot be used.
    """
    if _is_loopback(address):
        # The proxies are ignored with the whole environment; certificates of SSL_CERT_FILE are not.
        plain = not address.startswith("https:")
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else ssl.create_default_context()
        return httpx.Client(trust_env=False, verify=verify, **options)
    try:
        return httpx.Client(**options)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise ValueError(
            f"the proxy that the environment names ({_VARIABLES}) cannot be used: {error}; name "
            "an http:// proxy, unset the variable, or for SOCKS: pip install socksio"
        ) from None


def clean_token(token: str) -> str:
    """Returns a token without the blanks and line ends that a mounted file has around it.

    Raises:
        ValueError: a character of it cannot be sent; the message does not show the token.
    """
    token = token.strip()
    for place, character in enumerate(token, 1):
        if not "!" <= character <= "~":
            raise ValueError(
                f"GROVE_TOKEN: its character {place} of {len(token)} cannot be part of a token; "
                "copy the token again"
            )
    return token


def _is_loopback(address: str) -> bool:
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
