"""Refusal of a proxy that puts the site below a path of its host."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from webapp.rest.problem_details import problem

SENTENCE = (
    "Grove works only at the root of a host name, and this proxy puts it below {path}. "
    "Give it a name of its own, such as grove.example.org."
)

PROBES = ("/healthz", "/readyz", "/metrics")


class NoSubPath:
    """Links and scripts of all pages begin at the root, so the refusal of a page is plain text;
    REST gets problem details. A proxy says its path in X-Forwarded-Prefix or X-Script-Name, an ASGI
    server in `root_path`. It follows the middleware that sets headers of security."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        said = (
            request.META.get("SCRIPT_NAME"),
            request.META.get("HTTP_X_FORWARDED_PREFIX"),
            request.META.get("HTTP_X_SCRIPT_NAME"),
        )
        path = next((one for one in said if one and one.strip("/")), "")
        if path and request.path_info not in PROBES:
            text = SENTENCE.format(path=ascii(path[:100]))
            if _below(path, request.path_info).startswith("/api/"):
                return problem(501, text)
            return HttpResponse(f"{text}\n", status=501, content_type="text/plain; charset=utf-8")
        return self._get_response(request)


def _below(prefix: str, path: str) -> str:
    """Returns the address below the prefix, which a proxy may have removed or left."""
    return path.removeprefix(f"/{prefix.strip('/')}")
