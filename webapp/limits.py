"""How often one may ask, counted in the one database, so that it holds for all web processes.

Invariant: what is over a limit is answered 429 with Retry-After before anything is done for it.
A limit of N in S seconds lets N through at once, and then one every S / N seconds (the generic
cell rate algorithm, ITU-T I.371): one row for each limit and caller, one statement for each call.
Signing in has limits of its own, allauth's (`settings.CACHES`).
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import URLResolver, get_resolver

from webapp.views import too_many_requests

_SPEND = """
INSERT INTO accounts_allowance AS held (caller, full_at)
VALUES (%(caller)s, clock_timestamp() + %(each)s * interval '1 second')
ON CONFLICT (caller) DO UPDATE
SET full_at = greatest(held.full_at, clock_timestamp()) + %(each)s * interval '1 second'
WHERE greatest(held.full_at, clock_timestamp()) + %(each)s * interval '1 second'
      <= clock_timestamp() + %(seconds)s * interval '1 second'
RETURNING 1
"""
_WAIT = """
SELECT extract(epoch FROM full_at - clock_timestamp()) + %(each)s - %(seconds)s
FROM accounts_allowance WHERE caller = %(caller)s
"""
_FORGET = "DELETE FROM accounts_allowance WHERE full_at < clock_timestamp()"
_FORGET_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Limit:
    """`amount` calls of one caller in `seconds`."""

    name: str
    amount: int
    seconds: float

    def spend(self, caller: str) -> int:
        """0 if the call may be answered; else seconds (at least 1) until one may."""
        values = {
            "caller": f"{self.name}:{caller}",
            "each": self.seconds / self.amount,
            "seconds": self.seconds,
        }
        with connection.cursor() as cursor:
            cursor.execute(_SPEND, values)
            if cursor.fetchone():
                if secrets.randbelow(_FORGET_EVERY) == 0:
                    cursor.execute(_FORGET)
                return 0
            cursor.execute(_WAIT, values)
            return max(1, math.ceil(cursor.fetchone()[0]))


TOKENS = Limit("tokens", 30, 3600.0)
"""Making tokens, links and invitations."""
COMMENTS = Limit("comments", 120, 3600.0)
"""Writing, which may send mail."""
INGEST = Limit("ingest", 1200, 60.0)
"""Batches of events from engines that run elsewhere."""
EXPORTS = Limit("exports", 600, 60.0)
"""Reading logs; a page that plays one asks several times a second."""

FILES = Limit("export files", 60, 3600.0)
"""Asking for exports, which a worker writes."""

LIMITS: dict[tuple[str, str], Limit] = {
    ("POST", "tokens"): TOKENS,
    ("POST", "invite"): TOKENS,
    ("POST", "shares"): TOKENS,
    ("POST", "api-1:create_share"): TOKENS,
    ("POST", "api-1:create_token"): TOKENS,
    ("POST", "comments"): COMMENTS,
    ("POST", "edit-comment"): COMMENTS,
    ("POST", "api-1:create_comment"): COMMENTS,
    ("PATCH", "api-1:change_comment"): COMMENTS,
    ("POST", "api-1:add_events"): INGEST,
    ("POST", "exports"): FILES,
    ("POST", "api-1:create_export"): FILES,
    ("GET", "api-1:get_export_file"): EXPORTS,
    ("GET", "api-1:get_events"): EXPORTS,
    ("GET", "api-1:get_shared_events"): EXPORTS,
    ("GET", "api-1:get_archive"): EXPORTS,
    ("GET", "archive"): EXPORTS,
}
"""By method and name of the address."""


class Limits:
    """Answers 429 to who asks too often."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        names = _names_by_route()[request.resolver_match.route]
        at = ((request.method, name) for name in names)
        limit = next((LIMITS[one] for one in at if one in LIMITS), None)
        if limit is None:
            return None
        wait = limit.spend(caller_of(request))
        return too_many_requests(request, wait) if wait else None


@cache
def _names_by_route() -> dict[str, list[str]]:
    """Of an address of REST every operation has a name, and the resolver tells only the first."""
    names = defaultdict(list)
    for name, route in _addresses(get_resolver(), "", ""):
        names[route].append(name)
    return names


def _addresses(resolver: URLResolver, space: str, before: str) -> Iterator[tuple[str, str]]:
    for one in resolver.url_patterns:
        route = f"{before}{one.pattern}"
        if isinstance(one, URLResolver):
            yield from _addresses(
                one, f"{space}{one.namespace}:" if one.namespace else space, route
            )
        else:
            yield f"{space}{one.name}", route


def caller_of(request: HttpRequest) -> str:
    """Who is counted: the token that is shown, else who is signed in, else the address."""
    if shown := request.headers.get("Authorization"):
        return f"token {hashlib.sha256(shown.encode()).hexdigest()[:32]}"
    if request.user.is_authenticated:
        return f"user {request.user.pk}"
    return f"address {request.META.get('REMOTE_ADDR') or 'unknown'}"
