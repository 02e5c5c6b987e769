"""Conditional changes by REST under `If-Match` (RFC 9110, 13.1.1).

Invariants: a change is made only if nothing changed since the read. A request that would be refused
whatever its condition is refused as without one, before the condition is evaluated (RFC 9110,
13.2.1). Of concurrent changes of one object under the same ETag, one succeeds, and the others are
answered 412.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable
from typing import Any

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.cache import set_response_etag
from django.utils.http import parse_etags

from webapp.rest.problem_details import (
    LONGEST_CONDITION,
    MATCH,
    Invalid,
    changed_since,
    problem,
)

HEADER = "If-Match"


def conditional(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates an operation of REST so that it respects `If-Match`; the operation is called with
    parameters and a body that match the document."""

    @functools.wraps(operation)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method not in ("PATCH", "DELETE") or HEADER not in request.headers:
            return operation(request, *args, **kwargs)
        if not is_match(given := request.headers[HEADER]):
            raise Invalid(HEADER, given, "give one ETag or several")
        with transaction.atomic():
            if refusal := _failed_precondition(request, given):
                return refusal
            answer = operation(request, *args, **kwargs)
            if isinstance(answer, HttpResponse) and answer.status_code >= 400:
                transaction.set_rollback(True)
            return answer

    return wrapper


def is_match(value: str) -> bool:
    """Whether it could be the value of an `If-Match`, as the document declares."""
    return len(value) <= LONGEST_CONDITION and re.fullmatch(MATCH, value) is not None


def _failed_precondition(request: HttpRequest, given: str) -> HttpResponse | None:
    """The refusal, or None if the object is unchanged; until the transaction ends nobody else
    changes it under a condition."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [request.path])
    current = _current_response(request)
    if current.status_code == 405:
        return problem(
            412, "It cannot be read, so it has no ETag: send the request without If-Match."
        )
    if current.status_code != 200:
        return current  # a caller who may not read it cannot know its state
    etag = set_response_etag(current)["ETag"]
    etags = parse_etags(given)
    if etags == ["*"] or etag in etags:
        return None
    return changed_since(given, etag)


def _current_response(request: HttpRequest) -> HttpResponse:
    read = copy.copy(request)
    read.method = "GET"
    match = request.resolver_match
    return match.func(read, *match.args, **match.kwargs)
