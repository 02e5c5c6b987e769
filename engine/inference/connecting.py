"""HTTP clients for servers of other people: keys, and proxies of the environment."""

from __future__ import annotations

import os
import ssl
from typing import Any, TypeVar

import httpx

from engine.config.secrets import bare
from engine.inference.proxies import is_loopback, proxy_for

Kind = TypeVar("Kind", httpx.Client, httpx.AsyncClient)

_VARIABLES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY"


def connected(kind: type[Kind], address: str, **options: Any) -> Kind:
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
        return kind(trust_env=False, verify=verify, proxy=proxy, **options)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        if proxy is None:
            raise
        raise ValueError(
            f"the proxy that the environment names ({_VARIABLES}) cannot be used: {error}; name "
            "an http:// proxy, unset the variable, or for SOCKS: pip install socksio"
        ) from None


def secret_of(variable: str) -> str:
    """Returns the key or token of a variable, without what a mounted file or a copy has around it
    (`engine.config.secrets`); "" if it is unset.

    Raises:
        ValueError: a character of it cannot be sent; the message does not show the value.
    """
    secret = bare(os.environ.get(variable, ""))
    for place, character in enumerate(secret, 1):
        if not "!" <= character <= "~":
            raise ValueError(
                f"{variable}: its character {place} of {len(secret)} cannot be part of a key; "
                "copy the key again"
            )
    return secret
