"""A small OpenID provider that speaks real HTTP on this machine: code flow with PKCE, RS256."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET, KEY_ID = "grove-site", "between-the-two", "first"


class Provider(ThreadingHTTPServer):
    """Signs `person` in for any client, and remembers what it issued each code and token for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.person: dict[str, Any] = {"sub": "4711", "preferred_username": "erika"}
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: set[str] = set()
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def a_provider() -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield provider
    finally:
        provider.shutdown()
        thread.join()
        provider.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/openid-configuration":
            self._say(200, self._configuration())
        elif parts.path == "/keys":
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.server.key.public_key()))
            self._say(200, {"keys": [{**public, "kid": KEY_ID, "alg": "RS256", "use": "sig"}]})
        elif parts.path == "/authorize":
            self._authorize({name: one[0] for name, one in parse_qs(parts.query).items()})
        elif parts.path == "/userinfo":
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            known = token in self.server.tokens
            self._say(200 if known else 401, self.server.person if known else {})
        else:
            self._say(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        given = {name: one[0] for name, one in parse_qs(body).items()}
        requested = self.server.codes.pop(given.get("code", ""), None)
        if requested is None or not self._is_client(given) or not _proves(given, requested):
            self._say(400, {"error": "invalid_grant"})
            return
        access = secrets.token_urlsafe()
        self.server.tokens.add(access)
        claims = {"iss": self.server.issuer, "aud": CLIENT, "iat": time.time()}
        claims |= {"exp": time.time() + 60, "nonce": requested.get("nonce"), **self.server.person}
        signed = jwt.encode(claims, self.server.key, "RS256", headers={"kid": KEY_ID})
        self._say(200, {"access_token": access, "token_type": "Bearer", "id_token": signed})

    def _configuration(self) -> dict[str, Any]:
        issuer = self.server.issuer
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "userinfo_endpoint": f"{issuer}/userinfo",
            "jwks_uri": f"{issuer}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _authorize(self, parameters: dict[str, str]) -> None:
        right = parameters.get("client_id") == CLIENT and parameters.get("response_type") == "code"
        if (
            not right
            or parameters.get("code_challenge_method") != "S256"
            or "state" not in parameters
        ):
            self._say(400, {"error": "invalid_request"})
            return
        code = secrets.token_urlsafe()
        self.server.codes[code] = parameters
        query = urlencode({"code": code, "state": parameters["state"]})
        self.send_response(302)
        self.send_header("Location", f"{parameters['redirect_uri']}?{query}")
        self.end_headers()

    def _is_client(self, given: dict[str, str]) -> bool:
        return given.get("client_id") == CLIENT and given.get("client_secret") == SECRET

    def _say(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Logs nothing: the tests report failures themselves."""


def _proves(given: dict[str, str], parameters: dict[str, str]) -> bool:
    """Whether code and redirect address belong to the client that made the request (RFC 7636)."""
    digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    same = given.get("redirect_uri") == parameters["redirect_uri"]
    return same and secrets.compare_digest(challenge, parameters["code_challenge"])
