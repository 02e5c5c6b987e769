"""Requests to REST under conditions: made once (`Idempotency-Key`), or only if nothing changed
(`If-Match`, RFC 9110).

Invariants: what is asked again under a key is never done again, whichever process hears of it; a
refusal is not kept, so the same key may be tried again. Of those who change one thing at the same
time under the same ETag, one does, and the others are answered 412.
"""

from __future__ import annotations

import copy
import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import connection, transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.utils.cache import set_response_etag
from django.utils.http import parse_etags

from webapp.accounts.models import User
from webapp.accounts.tokens import user_behind
from webapp.limits import address_of, too_many_guesses
from webapp.once.models import KeptAnswer
from webapp.problems import MATCH, Invalid, problem
from webapp.projects.models import Project

KEY = "Idempotency-Key"
KEPT = timedelta(days=7)
LONGEST_KEY = 200
_FORGET_EVERY = 500
_SECRETS = (b'"token":', b'"link":')
"""What an answer holds that is shown once."""
_BEARER = "bearer "


class Conditions:
    """Answers in the view's place where a condition of the request says so."""

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
        if request.method in ("PATCH", "DELETE") and "If-Match" in request.headers:
            if not is_match(request.headers["If-Match"]):
                return _refused("If-Match", request.headers["If-Match"], "give an ETag, or several")
            asked = copy.copy(request)
            asked.method = "GET"
            return _if_same(
                request,
                lambda: view(asked, *args, **kwargs),
                lambda: view(request, *args, **kwargs),
            )
        return None


def _once(request: HttpRequest, do: Callable[[], HttpResponse]) -> HttpResponse | None:
    user, key = _asker(request), request.headers[KEY]
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
            # What a refusal did away with, such as files that are no model, stays away.
            kept.delete()
        else:
            _keep(kept, response, user)
    return response


def _keep(kept: KeptAnswer, response: HttpResponse, user: User) -> None:
    kept.projects = _seen_by(user)
    kept.status, kept.content_type = response.status_code, response.get("Content-Type", "")
    told = response.content
    kept.tells = not any(word in told.replace(b'": ', b'":') for word in _SECRETS)
    kept.body = told if kept.tells else b""
    kept.save()
    if secrets.randbelow(_FORGET_EVERY) == 0:
        KeptAnswer.objects.filter(at__lt=Now() - KEPT).delete()


def _seen_by(user: User) -> list[int]:
    """Ids of the projects that `user` sees."""
    return list(Project.objects.visible_to(user).values_list("pk", flat=True))


def _again(kept: KeptAnswer, digest: str, user: User) -> HttpResponse:
    if kept.digest and kept.digest != digest:
        return _refused(KEY, kept.key, "it stands for another request already: give each its own")
    if not kept.tells:
        return problem(409, "It was made under this key already, and its answer was told then.")
    if kept.token_id != (user.token and user.token.pk):
        return problem(409, "It was made under this key already, but not through this token.")
    if not set(kept.projects) <= set(_seen_by(user)):
        return problem(409, "It was made under this key already; you may see less by now.")
    return HttpResponse(bytes(kept.body), status=kept.status, content_type=kept.content_type)


def _refused(header: str, value: str, reason: str) -> HttpResponse:
    fault = Invalid(header, value, reason)
    return problem(422, "Some parameters cannot be used.", fault.problems)


def is_match(value: str) -> bool:
    """Whether it could be the value of an `If-Match`, as the document says."""
    return len(value) <= LONGEST_KEY and re.fullmatch(MATCH, value) is not None


def _asker(request: HttpRequest) -> User | None:
    """Whoever the view will find, too; None if it lets nobody in."""
    if shown := request.headers.get("Authorization"):
        if too_many_guesses(address_of(request)):
            return None
        is_bearer = shown.lower().startswith(_BEARER)
        return user_behind(shown[len(_BEARER) :].strip()) if is_bearer else None
    user = request.user
    return user if user.is_authenticated and user.is_active else None


def _if_same(
    request: HttpRequest, read: Callable[[], HttpResponse], do: Callable[[], HttpResponse]
) -> HttpResponse:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [request.path])
        now = read()
        if now.status_code == 405:
            return problem(412, "It cannot be read, so it has no ETag: ask without If-Match.")
        if now.status_code != 200:
            return now  # who may not read it cannot know how it is
        etag = set_response_etag(now)["ETag"]
        wanted = parse_etags(request.headers["If-Match"])
        if wanted != ["*"] and etag not in wanted:
            return problem(
                412,
                "It was changed since you read it: read it again, then decide.",
                Invalid("If-Match", request.headers["If-Match"], f"it is {etag} now").problems,
            )
        response = do()
        if response.status_code >= 400:
            transaction.set_rollback(True)
        return response
