"""Static files, served before Django.

A page requests seventy of them at once, and a pass through Django's middlewares and threads takes
ten times as long as serving a file.

Invariant: a response is the whole file as it is now, under the length that it declares. Waits: for
the disk alone; the files are small and in its cache.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from whitenoise.middleware import WhiteNoiseMiddleware

from webapp.http.body_limit import Send


class StaticFiles:
    """Server of static files; WhiteNoise finds a file and decides its response."""

    def __init__(self) -> None:
        self._whitenoise = WhiteNoiseMiddleware()
        self._security_headers = _security_headers()

    def find(self, path: str) -> Any | None:
        """The file of an address; None if the address is not ours or has no file."""
        if not path.startswith(self._whitenoise.static_prefix):
            return None
        try:
            return self._whitenoise.find_file(path)
        except (ValueError, SuspiciousFileOperation):  # a name that no file can have
            return None

    async def send(self, file: Any, scope: dict[str, Any], send: Send) -> None:
        """Answers a request for this file."""
        environ = {
            "HTTP_" + name.decode("latin-1").upper().replace("-", "_"): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        response = file.get_response(scope["method"], environ)
        body = b""
        if response.file is not None:
            with response.file as opened:
                body = opened.read()
        headers = [(name.lower().encode(), value.encode()) for name, value in response.headers]
        headers += self._security_headers
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _security_headers() -> list[tuple[bytes, bytes]]:
    """The headers that `SecurityMiddleware` would add, and a policy for a picture opened alone."""
    headers = {
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": settings.SECURE_REFERRER_POLICY,
        "cross-origin-opener-policy": settings.SECURE_CROSS_ORIGIN_OPENER_POLICY,
    }
    if settings.SECURE_HSTS_SECONDS:
        age = f"max-age={settings.SECURE_HSTS_SECONDS}; includeSubDomains; preload"
        headers["strict-transport-security"] = age
    return [(name.encode(), value.encode()) for name, value in headers.items()]
