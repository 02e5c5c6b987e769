"""Problem details (RFC 9457): the shape of every refusal of the REST API.

{type, title, status, detail, problems: [{path, value, reason}]}; `problems` names each invalid
field and what is allowed. `document` adds them to the schema.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI, Schema
from ninja.errors import (
    AuthenticationError,
    HttpError,
    ValidationError,
    ValidationErrorContext,
)
from psycopg_pool import PoolTimeout
from pydantic import ConfigDict

from engine.config.deadlines import DATABASE_CONNECTION
from engine.config.errors import ConfigError, printable, shown
from webapp import disk
from webapp.errors import Queued, Refused
from webapp.rest.queued import queued

logger = logging.getLogger(__name__)


class Invalid(Refused):
    """Raised for a parameter that cannot be used although its type is right. `status` is that of
    HTTP: 422 for a value that can never be used, 404 if it names nothing, 409 if it conflicts with
    the current state."""

    sentence = "Some parameters cannot be used."

    def __init__(self, path: str, value: Any, reason: str, status: int = 422):
        self.status = status
        self.problems = [{"path": path, "value": shown(value), "reason": reason}]
        super().__init__(reason)


class TooMany(Exception):
    """Raised if the caller has to wait for so many seconds."""

    def __init__(self, seconds: int):
        super().__init__(f"try again in {seconds} seconds")
        self.seconds = seconds


class Fault(Schema):
    path: str
    value: Any
    reason: str


class Problem(Schema):
    """A refusal; each problem names a field, its value and what is allowed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Unprocessable Entity",
                    "status": 422,
                    "detail": "These settings cannot run.",
                    "problems": [
                        {
                            "path": "search.nodes_per_tree",
                            "value": 0,
                            "reason": "Input should be greater than or equal to 1",
                        }
                    ],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    problems: list[Fault]


_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


def document(schema: dict[str, Any]) -> dict[str, Any]:
    """Adds to the OpenAPI document the refusals of each operation."""
    models = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    named = schema.setdefault("components", {}).setdefault("schemas", {})
    named |= {**models.pop("$defs"), "Problem": models}
    for operations in schema["paths"].values():
        for method, operation in operations.items():
            _add_conditions(method, operation)
            for status in _refusals(method, operation):
                response = {"description": HTTPStatus(status).phrase}
                if method != "head":
                    response["content"] = _PROBLEM
                operation["responses"].setdefault(status, response)
            if method == "get":
                response = {"description": "Not modified since the ETag of If-None-Match"}
                operation["responses"].setdefault(304, response)
    return schema


LONGEST_CONDITION = 200
MATCH = r"[!-~]+(?: [!-~]+)*"
"""Pattern of an `If-Match`."""
_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_CONDITION,
        "pattern": r"^[!-~]+$",
    },
    "description": (
        "A request repeated with the same key within a week changes nothing more and returns the "
        "same response; 409 if that contained a secret, if you may see less by now, or if the key "
        "was used for another request."
    ),
}
_CHANGED = (
    "Precondition Failed: the resource has none of the ETags that If-Match names (RFC 9110, "
    "13.1.1). Read it again, then decide."
)
_ETAG = {"ETag": {"description": "For If-None-Match and If-Match", "schema": {"type": "string"}}}


def _add_conditions(method: str, operation: dict[str, Any]) -> None:
    """Adds the headers that `webapp.idempotency` handles for every operation.

    Preconditions are no parameters here: RFC 9110 defines them for every operation, and a failed
    one implies nothing about the request. They name the `ETag` header of a read.
    """
    names = {parameter["name"] for parameter in operation.get("parameters", ())}
    if method == "post" and _KEY["name"] not in names:
        operation.setdefault("parameters", []).append(_KEY)
    if method in ("get", "patch", "delete"):
        operation["responses"][412] = {"description": _CHANGED, "content": _PROBLEM}
    if method == "get" and "application/json" in operation["responses"].get(200, {}).get(
        "content", {}
    ):
        operation["responses"][200].setdefault("headers", {}).update(_ETAG)


def _refusals(method: str, operation: dict[str, Any]) -> list[int]:
    locations = {parameter["in"] for parameter in operation.get("parameters", ())}
    statuses = {401, 403, 429, 503}
    names = {parameter["name"] for parameter in operation.get("parameters", ())}
    # A name may be that of a missing object.
    if "path" in locations or names & {"run", "version"}:
        statuses.add(404)
    if locations:
        statuses |= {400, 422}
    if any(
        parameter["name"] == "cursor" and "string" in str(parameter["schema"])
        for parameter in operation.get("parameters", ())
    ):
        statuses.add(409)  # a cursor of another list
    if method in ("post", "patch"):
        statuses |= {400, 404, 409, 413, 422, disk.STATUS}
    if method in ("patch", "delete"):
        statuses.add(409)
    return sorted(statuses)


def problem(
    status: int, detail: str, problems: list[dict[str, Any]] | None = None, **more: Any
) -> HttpResponse:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "problems": problems or [],
        **more,
    }
    return JsonResponse(body, status=status, content_type="application/problem+json")


def changed_since(given: str, etag: str) -> HttpResponse:
    """Returns the refusal of a request whose `If-Match` is not the resource's ETag."""
    return problem(
        412,
        "It was changed since you read it: read it again, then decide.",
        Invalid("If-Match", given, f"it is {etag} now").problems,
    )


def install(api: NinjaAPI) -> None:
    """Makes `api` answer every error of ours in this shape."""
    for kind, answer in _ANSWERS.items():
        api.add_exception_handler(kind, _handler(answer))


def _handler(
    answer: Callable[[Any], HttpResponse],
) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: answer(error)


def unreadable(contexts: Iterable[ValidationErrorContext]) -> ValidationError:
    """Ninja's errors about a request as problems: with the given value, and the path at which the
    caller wrote it, without the names of our arguments."""
    return ValidationError(
        [
            {
                "path": shown(_path(context.model, error["loc"])),
                "value": None if error["type"] == "missing" else shown(error["input"]),
                "reason": error["msg"],
            }
            for context in contexts
            for error in context.pydantic_validation_error.errors(include_url=False)
        ]
    )


def _path(model: Any, location: tuple[Any, ...]) -> str:
    if location[:1] == (getattr(model, "__read_from_single_attr__", None),):
        location = location[1:]  # the body is one argument
    names = model.__ninja_flatten_map_reverse__
    for length in range(len(location), 0, -1):
        if name := names.get(location[:length]):
            location = (*name, *location[length:])
            break
    return ".".join(map(str, location)) or "body"


def _malformed(error: Exception) -> HttpResponse:
    return problem(400, f"The request cannot be read: {printable(str(error))}")


def _of_ninja(error: HttpError) -> HttpResponse:
    """A refusal by ninja: a body that is no JSON (400), or a session without its CSRF token
    (403)."""
    invalid = Invalid("body", None, "send one JSON document, with Content-Type: application/json")
    problems = invalid.problems if error.status_code == 400 else []
    return problem(error.status_code, f"{error.message}.", problems)


def _unknown(error: AuthenticationError) -> HttpResponse:
    response = problem(401, "Sign in first, or send a token that is valid: Authorization: Bearer …")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _too_many(error: TooMany) -> HttpResponse:
    detail = f"Too many wrong tokens came from your address: {error}."
    response = problem(429, detail)
    response.headers["Retry-After"] = str(error.seconds)
    return response


DATABASE_RETRY_SECONDS = "5"
"""`Retry-After` of a response that says that the database does not answer."""


def log_busy_database(error: BaseException | None) -> None:
    """Logs the setting if all connections to the database were in use for too long."""
    if error and isinstance(error.__cause__, PoolTimeout):
        logger.error(DATABASE_CONNECTION.passed)


def _no_database(error: Exception) -> HttpResponse:
    logger.error("the database does not answer", exc_info=error)
    log_busy_database(error)
    response = problem(
        503, "The database does not answer. Nothing is lost; try again in a few seconds."
    )
    response.headers["Retry-After"] = DATABASE_RETRY_SECONDS
    return response


def _failed(error: Exception) -> HttpResponse:
    logger.error("a request failed", exc_info=error)
    if disk.is_full(error):
        return problem(disk.STATUS, disk.FULL)
    return problem(500, "Internal server error; the server's log has the details.")


_ANSWERS: dict[type[Exception], Callable[[Any], HttpResponse]] = {
    Refused: lambda e: problem(e.status, e.detail, e.problems, **e.members),
    Queued: queued,
    ConfigError: lambda e: problem(422, "These settings cannot run.", e.problems),
    ValidationError: lambda e: problem(422, "Some parameters cannot be used.", e.errors),
    PermissionDenied: lambda e: problem(403, str(e) or "Your role does not allow this."),
    Http404: lambda e: problem(404, "It does not exist, or you do not have access to it."),
    AuthenticationError: _unknown,
    TooMany: _too_many,
    HttpError: _of_ninja,
    RequestDataTooBig: lambda e: problem(413, "The body is too large: 2.5 MB at most."),
    SuspiciousOperation: _malformed,
    BadRequest: _malformed,
    MultiPartParserError: _malformed,
    UnreadablePostError: _malformed,
    OperationalError: _no_database,
    InterfaceError: _no_database,
    Exception: _failed,
}
