"""Every page of the site, derived from its addresses, for tests that visit all of them.

Invariant: a page is an address whose rule (`tests.security.rules`) answers its caller with 200 and
HTML; every address has a rule, so a new page is visited as soon as it exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tests.conftest import var_settings
from tests.helpers.builders import Cast, a_cast
from tests.helpers.planted import plant
from tests.security.rules import EVERYBODY, ROWS
from tests.security.test_walk import filled_in

NO_PAGES = frozenset(
    {
        "healthz",  # a word for load balancers
        "readyz",  # the same
        "metrics",  # for Prometheus
        "export-workspace",  # a file
        "audit-file",  # the same
        "export-report",  # the same
        "mfa_login_webauthn",  # a challenge for scripts
        "search-problems",  # a list for scripts
    }
)


@dataclass
class Site:
    """One object of every kind in Alice's project, committed, as a served site shows it."""

    cast: Cast
    arguments: dict[str, Any]

    def pages(self, who: str = "alice") -> dict[str, str]:
        """Returns the address of every page that `who` gets, by name; `who` may be `nobody`."""
        return {
            row.name: self.address(row.name)
            for row in ROWS
            if row.method == "get"
            and row.answers[EVERYBODY.index(who)] == 200
            and not row.name.startswith("api-")
            and row.name not in NO_PAGES
        }

    def address(self, name: str) -> str:
        """Returns the address of that name, with the query of its rule."""
        row = next(row for row in ROWS if row.name == name and row.method == "get")
        query = row.body(self.cast) if callable(row.body) else row.body
        address = filled_in(name, self.arguments)
        return f"{address}?{urlencode(query, doseq=True)}" if query else address


def a_site(settings: Any, server: Any) -> Site:
    """Creates the site; its files are in the server's directories."""
    for name, value in var_settings(server.var).items():
        setattr(settings, name, value)
    cast = a_cast()
    return Site(cast, plant(cast))
