"""Django's protection against forged requests, behind a proxy on any port."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port
from django.middleware.csrf import CsrfViewMiddleware


class CsrfMiddleware(CsrfViewMiddleware):
    """A proxy that sends `Host` without the port (nginx's `$host`) is not to blame for a form: the
    page of another port of the same host has the same cookies, so only the name is compared, as for
    the websocket. Without a trusted proxy the whole origin is compared."""

    def _origin_verified(self, request: HttpRequest) -> bool:
        if super()._origin_verified(request):
            return True
        try:
            origin = urlsplit(request.META["HTTP_ORIGIN"])
            host = origin.hostname
        except ValueError:
            return False
        name, _ = split_domain_port(request.get_host())
        is_same = (origin.scheme, host) == (request.scheme, name.strip("[]"))
        return bool(settings.TRUSTED_PROXIES) and is_same
