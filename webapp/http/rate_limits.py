"""Rate limits, counted in the one database, so that they hold across all web processes.

Invariants: a request over a limit is answered 429 with Retry-After before any work is done for it;
callers are counted by the identified user or token, never by what they claim. A request with a
token spends of the token's allowance and of one that all tokens of its user share.

A limit of N in S seconds lets N through at once, and then one every S / N seconds (the generic cell
rate algorithm, ITU-T I.371): one row for each limit and caller, one statement for each call.
Sign-in has its own limits, allauth's (`settings.CACHES`).
"""

from __future__ import annotations

import ipaddress
import math
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import URLResolver, get_resolver

from webapp.http.callers import caller_of
from webapp.http.error_pages import too_many_requests
from webapp.rest.problem_details import TooMany

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
_DELETE_EXPIRED = "DELETE FROM accounts_allowance WHERE full_at < clock_timestamp()"
_DELETE_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Limit:
    """`amount` calls of one caller in `seconds`."""

    name: str
    amount: int
    seconds: float

    def spend(self, caller: str) -> int:
        """Spends one call: 0 if it may be answered; else seconds (at least 1) until one may."""
        values = {
            "caller": f"{self.name}:{caller}",
            "each": self.seconds / self.amount,
            "seconds": self.seconds,
        }
        with connection.cursor() as cursor:
            cursor.execute(_SPEND, values)
            if cursor.fetchone():
                if secrets.randbelow(_DELETE_EVERY) == 0:
                    cursor.execute(_DELETE_EXPIRED)
                return 0
        return max(1, self.wait(caller))

    def wait(self, caller: str) -> int:
        """Seconds until a call may be answered, 0 if it may be now. Spends nothing."""
        values = {
            "caller": f"{self.name}:{caller}",
            "each": self.seconds / self.amount,
            "seconds": self.seconds,
        }
        with connection.cursor() as cursor:
            cursor.execute(_WAIT, values)
            row = cursor.fetchone()
        return max(0, math.ceil(row[0])) if row else 0


def limit(name: str) -> Limit:
    """The limit of that name in `settings.RATE_LIMITS`."""
    return Limit(name, *settings.RATE_LIMITS[name])


def count_guess(address: str) -> None:
    """Counts an invalid token, or an invalid secret of a link, from the address.

    Raises:
        TooMany: the address sent too many lately. A valid one is never counted, and never refused.
    """
    if wait := limit(GUESSES).spend(f"address {address}"):
        raise TooMany(wait)


TOKENS_OF_ONE_USER = 4
"""All tokens of a user together have this many times the allowance of one."""


def spend(one: Limit, request: HttpRequest) -> int:
    """0 if the request may be answered; else seconds until it may. A request refused by the token's
    own allowance spends nothing of the user's, so one token alone never blocks the others."""
    if wait := one.spend(counted_as(request)):
        return wait
    user = caller_of(request).user
    if user is None or user.token is None:
        return 0
    of_all = Limit(one.name, one.amount * TOKENS_OF_ONE_USER, one.seconds)
    return of_all.spend(f"all tokens of user {user.pk}")


GUESSES = "guesses"
"""Name in `settings.RATE_LIMITS` of the limit on invalid tokens and link secrets, by address."""

LIMITS: dict[tuple[str, str], str] = {
    ("POST", "tokens"): "tokens",
    ("POST", "invite"): "tokens",
    ("POST", "shares"): "tokens",
    ("POST", "comparison-shares"): "tokens",
    ("POST", "api-1:share_comparison"): "tokens",
    ("GET", "shared-comparison"): "guests",
    ("GET", "api-1:get_shared_comparison"): "guests",
    ("POST", "api-1:create_share"): "tokens",
    ("POST", "api-1:create_invitation"): "tokens",
    ("POST", "invitation"): "guests",
    ("POST", "api-1:accept_invitation"): "guests",
    ("POST", "api-1:create_token"): "tokens",
    ("POST", "test-notifications"): "alert tests",
    ("POST", "change-alert-channel"): "alert tests",
    ("POST", "api-1:send_test_notification"): "alert tests",
    ("POST", "api-1:act_on_alert_channel"): "alert tests",
    ("POST", "comments"): "comments",
    ("POST", "edit-comment"): "comments",
    ("POST", "api-1:create_comment"): "comments",
    ("PATCH", "api-1:change_comment"): "comments",
    ("POST", "api-1:add_events"): "ingest",
    ("POST", "exports"): "export files",
    ("POST", "api-1:create_export"): "export files",
    ("GET", "api-1:get_export_file"): "exports",
    ("GET", "export-workspace"): "workspace exports",
    ("GET", "api-1:export_workspace"): "workspace exports",
    ("POST", "api-1:create_workspace_import"): "workspace imports",
    ("POST", "api-1:retry_workspace_import"): "workspace imports",
    ("POST", "retry-workspace-import"): "workspace imports",
    ("GET", "api-1:get_events"): "exports",
    ("GET", "api-1:get_shared_events"): "exports",
    ("GET", "api-1:get_archive"): "exports",
    ("GET", "archive"): "exports",
}
"""Names in `settings.RATE_LIMITS`, by method and route name."""


class Limits:
    """Middleware that answers 429 to callers over a limit."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        names = _names_by_route()[request.resolver_match.route]
        keys = ((request.method, name) for name in names)
        name = next((LIMITS[one] for one in keys if one in LIMITS), None)
        if name is None:
            return None
        wait = spend(limit(name), request)
        return too_many_requests(request, wait) if wait else None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """429 of a page; REST answers by itself."""
        if isinstance(exception, TooMany):
            return too_many_requests(request, exception.seconds)
        return None


@cache
def _names_by_route() -> dict[str, list[str]]:
    """Route -> names of all its operations, of which the resolver returns only the first."""
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


def counted_as(request: HttpRequest) -> str:
    """The identified token, else the user, else the address: no key is chosen by the client, so it
    can neither be counted as another caller nor fill the table."""
    return caller_of(request).key or f"address {address_of(request)}"


def address_of(request: HttpRequest) -> str:
    """The request's address, under which invalid tokens and link secrets are counted."""
    return counted_address(request.META.get("REMOTE_ADDR") or "")


def counted_address(address: str) -> str:
    """An IP address as it is counted: of IPv6 the first 64 bits. One client has all addresses of
    such a prefix, so counting each would have no effect."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip) >> 64 << 64, 64)))
