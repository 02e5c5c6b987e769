"""Middleware for REST requests that are executed once (`Idempotency-Key`).

Invariants: a request repeated under a key is never executed again, in whichever process it arrives;
a refusal is not stored, so the same key may be tried again.
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
KEPT = timedelta(days=7)
LONGEST_KEY = 200
_FORGET_EVERY = 500
_SECRETS = (b'"token":', b'"link":')
"""Keys of a response whose values are shown once."""


class Once:
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
            return _once(request, lambda: view(request, *args, **kwargs))
        return None


def _once(request: HttpRequest, do: Callable[[], HttpResponse]) -> HttpResponse | None:
    user, key = caller_of(request).user, request.headers[KEY]
    try:
        body = request.body
    except (RequestDataTooBig, UnreadablePostError):
        return None  # the view refuses it
    if user is None or not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        return (
            None
            if user is None
            else _refused(KEY, key, "give 1 to 200 characters that can be read")
        )
    asked = b"\n".join((request.method.encode(), request.get_full_path().encode(), body))
    with transaction.atomic():
        kept, is_new = KeptAnswer.objects.get_or_create(
            user=user,
            key=key,
            defaults={"digest": hashlib.sha256(asked).hexdigest(), "token": user.token},
        )
        if not is_new:
            return _again(kept, hashlib.sha256(asked).hexdigest(), user)
        response = do()
        if response.status_code >= 500 or connection.needs_rollback:
            transaction.set_rollback(True)
        elif response.status_code >= 300:
            # What a refusal deleted, such as files that are no model, remains deleted.
            kept.delete()
        else:
            _keep(kept, response, user)
    return response


def _keep(kept: KeptAnswer, response: HttpResponse, user: Any) -> None:
    kept.projects = projects_seen_by(user)
    kept.status, kept.content_type = response.status_code, response.get("Content-Type", "")
    told = response.content
    kept.tells = not any(word in told.replace(b'": ', b'":') for word in _SECRETS)
    kept.body = told if kept.tells else b""
    kept.save()
    if secrets.randbelow(_FORGET_EVERY) == 0:
        KeptAnswer.objects.filter(at__lt=Now() - KEPT).delete()


def _again(kept: KeptAnswer, digest: str, user: Any) -> HttpResponse:
    if kept.digest and kept.digest != digest:
        reason = "it stands for another request already: give each its own"
        return _refused(KEY, kept.key, reason, 409)
    if not kept.tells:
        return problem(409, "It was made under this key already, and its answer was told then.")
    if kept.token_id != (user.token and user.token.pk):
        return problem(409, "It was made under this key already, but not through this token.")
    if not set(kept.projects) <= set(projects_seen_by(user)):
        return problem(409, "It was made under this key already; you may see less by now.")
    return HttpResponse(bytes(kept.body), status=kept.status, content_type=kept.content_type)


def _refused(header: str, value: str, reason: str, status: int = 422) -> HttpResponse:
    fault = Invalid(header, value, reason)
    return problem(status, "Some parameters cannot be used.", fault.problems)
