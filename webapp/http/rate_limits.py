"""How often one may ask, counted in the one database, so that it holds for all web processes.

Invariants: what is over a limit is answered 429 with Retry-After before anything is done for it;
callers are counted by who was identified, never by what they say of themselves.
Who comes by a token spends of the token's allowance and of one that all tokens of its user share.
A limit of N in S seconds lets N through at once, and then one every S / N seconds (the generic
cell rate algorithm, ITU-T I.371): one row for each limit and caller, one statement for each call.
Signing in has limits of its own, allauth's (`settings.CACHES`).
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
        return max(1, self.wait(caller))

    def wait(self, caller: str) -> int:
        """Seconds until a call may be answered, 0 if it may be now. Nothing is spent."""
        values = {
            "caller": f"{self.name}:{caller}",
            "each": self.seconds / self.amount,
            "seconds": self.seconds,
        }
        with connection.cursor() as cursor:
            cursor.execute(_WAIT, values)
            found = cursor.fetchone()
        return max(0, math.ceil(found[0])) if found else 0


def limit(name: str) -> Limit:
    """The limit of that name in `settings.RATE_LIMITS`."""
    return Limit(name, *settings.RATE_LIMITS[name])


def count_guess(address: str) -> None:
    """A token, or the secret of a link, that let nobody in came from the address.

    Raises:
        TooMany: so did too many lately. One that is right is never counted, and never refused.
    """
    if wait := limit(GUESSES).spend(f"address {address}"):
        raise TooMany(wait)


TOKENS_OF_ONE_USER = 4
"""All tokens of a user together get so many times what one of them gets."""


def spend(one: Limit, request: HttpRequest) -> int:
    """0 if the request may be answered; else seconds until it may. What is refused by the token's
    own allowance spends nothing of the user's, so one token never holds up the others by itself."""
    if wait := one.spend(counted_as(request)):
        return wait
    user = caller_of(request).user
    if user is None or user.token is None:
        return 0
    of_all = Limit(one.name, one.amount * TOKENS_OF_ONE_USER, one.seconds)
    return of_all.spend(f"all tokens of user {user.pk}")


GUESSES = "guesses"
"""Of `settings.RATE_LIMITS`: tokens and secrets of links that let nobody in, for each address that
they come from."""

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
    ("GET", "api-1:get_events"): "exports",
    ("GET", "api-1:get_shared_events"): "exports",
    ("GET", "api-1:get_archive"): "exports",
    ("GET", "archive"): "exports",
}
"""Names in `settings.RATE_LIMITS`, by method and name of the address."""


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
        name = next((LIMITS[one] for one in at if one in LIMITS), None)
        if name is None:
            return None
        wait = spend(limit(name), request)
        return too_many_requests(request, wait) if wait else None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Of a page; REST answers by itself."""
        if isinstance(exception, TooMany):
            return too_many_requests(request, exception.seconds)
        return None


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


def counted_as(request: HttpRequest) -> str:
    """The token that was identified, else the user, else the address: nothing that a client chooses
    is a key, so it cannot be counted as somebody else, nor fill the table."""
    return caller_of(request).key or f"address {address_of(request)}"


def address_of(request: HttpRequest) -> str:
    """Where the request comes from, under which wrong tokens and secrets of links are counted."""
    return counted_address(request.META.get("REMOTE_ADDR") or "")


def counted_address(address: str) -> str:
    """An IP address as it is counted: of IPv6 the first 64 bits. One client gets all addresses that
    begin with them, so counting each would count nothing."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))
