"""Problem details (RFC 9457): every refusal of the REST API in one shape.

{type, title, status, detail, problems: [{path, value, reason}]}; `problems` names each field at
fault and what is allowed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from engine.config import ConfigError
from webapp.experiments.states import TransitionRefused

logger = logging.getLogger(__name__)


class Invalid(Exception):
    """A parameter that cannot be used although its type is right."""

    def __init__(self, path: str, value: Any, reason: str):
        self.problems = [{"path": path, "value": value, "reason": reason}]
        super().__init__(reason)


def problem(status: int, detail: str, problems: list[dict[str, Any]] | None = None) -> HttpResponse:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "problems": problems or [],
    }
    return JsonResponse(body, status=status, content_type="application/problem+json")


def install(api: NinjaAPI) -> None:
    """Make `api` answer every error of ours in this shape."""
    for kind, answer in _ANSWERS.items():
        api.add_exception_handler(kind, _handler(answer))


def _handler(
    answer: Callable[[Any], HttpResponse],
) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: answer(error)


def _invalid(error: ValidationError) -> HttpResponse:
    problems = [
        {
            "path": ".".join(str(part) for part in fault["loc"][1:]),
            "value": _plain(fault.get("input")),
            "reason": fault["msg"],
        }
        for fault in error.errors
    ]
    return problem(422, "Some parameters cannot be used.", problems)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else "..."


def _failed(error: Exception) -> HttpResponse:
    logger.error("a request failed", exc_info=error)
    return problem(500, "Something went wrong on our side; the server's log tells what.")


_ANSWERS: dict[type[Exception], Callable[[Any], HttpResponse]] = {
    ConfigError: lambda e: problem(422, "These settings cannot run.", e.problems),
    Invalid: lambda e: problem(422, "Some parameters cannot be used.", e.problems),
    ValidationError: _invalid,
    TransitionRefused: lambda e: problem(409, f"Nothing changed: {e}."),
    PermissionDenied: lambda e: problem(403, str(e) or "Your role does not allow this."),
    Http404: lambda e: problem(404, "It does not exist, or you may not see it."),
    AuthenticationError: lambda e: problem(401, "Sign in first."),
    HttpError: lambda e: problem(e.status_code, e.message),
    Exception: _failed,
}
