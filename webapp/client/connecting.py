"""HTTP connections to a Grove server: its token, and proxies of the environment."""

from __future__ import annotations

import ssl
from typing import Any

import httpx

from webapp.client.proxies import is_loopback, proxy_for

_AROUND = "\ufeff\u200b\u200c\u200d\u2060"
"""As in `engine.config.secrets`, which the client does not import."""
_VARIABLES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY"


def connected(address: str, **options: Any) -> httpx.Client:
    """Returns a client for the server at `address`. A server of this machine is never reached
    through a proxy, whatever the environment says.

    Raises:
        ValueError: the environment names a proxy that cannot be used.
    """
    is_here = is_loopback(address)
    # Plain HTTP to this machine needs no certificates, which take a moment to load.
    plain = is_here and not address.startswith("https:")
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else httpx.create_ssl_context()
    proxy = proxy_for(address)
    try:
        # httpx reads neither networks of IPv6 nor brackets in NO_PROXY, and ends at them.
        return httpx.Client(trust_env=False, verify=verify, proxy=proxy, **options)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        if proxy is None:
            raise
        raise ValueError(
            f"the proxy that the environment names ({_VARIABLES}) cannot be used: {error}; name "
            "an http:// proxy, unset the variable, or for SOCKS: pip install socksio"
        ) from None


def bare(token: str) -> str:
    """Returns a token without what a mounted file or a copy has around it: blanks, line ends, byte
    order marks and characters of no width."""
    before = None
    while before != token:
        before, token = token, token.strip().strip(_AROUND)
    return token


def clean_token(token: str) -> str:
    """Returns a token as `bare`.

    Raises:
        ValueError: a character of it cannot be sent; the message does not show the token.
    """
    token = bare(token)
    for place, character in enumerate(token, 1):
        if not "!" <= character <= "~":
            raise ValueError(
                f"GROVE_TOKEN: its character {place} of {len(token)} cannot be part of a token; "
                "copy the token again"
            )
    return token
