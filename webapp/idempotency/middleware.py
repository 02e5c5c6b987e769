"""Middleware for REST requests that are executed once (`Idempotency-Key`).

Invariants: a request repeated under a key is never executed again, in whichever process it arrives;
neither a refusal nor a place in a queue is stored, so the same key may be tried again.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import connection, transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, UnreadablePostError

from webapp.http.callers import caller_of, projects_seen_by
from webapp.idempotency.models import KeptAnswer
from webapp.rest.problem_details import Invalid, problem

KEY = "Idempotency-Key"
RETENTION = timedelta(days=7)
LONGEST_KEY = 200
_DELETE_EVERY = 500
_SECRETS = (b'"token":', b'"link":')
"""Keys of a response whose values are shown once."""


class IdempotencyMiddleware:
    """Replays the stored response to a request with the same key, in place of the view."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if not request.path.startswith("/api/"):
            return None
        if request.method == "POST" and KEY in request.headers:
            return _execute_once(request, lambda: view(request, *args, **kwargs))
        return None


def _execute_once(request: HttpRequest, execute: Callable[[], HttpResponse]) -> HttpResponse | None:
    user, key = caller_of(request).user, request.headers[KEY]
    try:
        body = request.body
    except (RequestDataTooBig, UnreadablePostError):
        return None  # the view refuses it
    if user is None or not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        return None if user is None else _refused(KEY, key, "give 1 to 200 printable characters")
    fingerprint = b"\n".join((request.method.encode(), request.get_full_path().encode(), body))
    with transaction.atomic():
        stored, is_new = KeptAnswer.objects.get_or_create(
            user=user,
            key=key,
            defaults={"digest": hashlib.sha256(fingerprint).hexdigest(), "token": user.token},
        )
        if not is_new:
            return _replay(stored, hashlib.sha256(fingerprint).hexdigest(), user)
        response = execute()
        if response.status_code >= 500 or connection.needs_rollback:
            transaction.set_rollback(True)
        elif response.status_code >= 300 or "Retry-After" in response.headers:
            # What a refusal deleted, such as files that are no model, remains deleted; a place in
            # a queue is kept.
            stored.delete()
        else:
            _store(stored, response, user)
    return response


def _store(stored: KeptAnswer, response: HttpResponse, user: Any) -> None:
    stored.projects = projects_seen_by(user)
    stored.status, stored.content_type = response.status_code, response.get("Content-Type", "")
    content = response.content
    stored.tells = not any(word in content.replace(b'": ', b'":') for word in _SECRETS)
    stored.body = content if stored.tells else b""
    stored.save()
    if secrets.randbelow(_DELETE_EVERY) == 0:
        KeptAnswer.objects.filter(at__lt=Now() - RETENTION).delete()


def _replay(stored: KeptAnswer, digest: str, user: Any) -> HttpResponse:
    if stored.digest and stored.digest != digest:
        reason = "already used for another request: give each request its own key"
        return _refused(KEY, stored.key, reason, 409)
    if not stored.tells:
        return problem(
            409,
            "This key was already used, and the response, which is not stored, contained a secret.",
        )
    if stored.token_id != (user.token and user.token.pk):
        return problem(409, "This key was already used, but with another token.")
    if not set(stored.projects) <= set(projects_seen_by(user)):
        return problem(409, "This key was already used; you may see less by now.")
    return HttpResponse(bytes(stored.body), status=stored.status, content_type=stored.content_type)


def _refused(header: str, value: str, reason: str, status: int = 422) -> HttpResponse:
    invalid = Invalid(header, value, reason)
    return problem(status, "Some parameters cannot be used.", invalid.problems)
