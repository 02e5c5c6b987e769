"""Tests that every parent path of a page's address leads to a page."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import Resolver404, resolve

from tests.security.rules import ROWS
from tests.security.test_walk import filled_in, undone
from webapp.config.parents import PAGES

pytestmark = pytest.mark.django_db

NAMES = sorted(
    {row.name for row in ROWS if not row.name.startswith("api-") and row.name != "reference"}
)
NEEDS_MORE = (400, 405)
"""Addresses that require a query or only accept a form: their page says so."""


OF_A_STATE = ("/account/", "/sign-", "/shared/")
"""Pages that need recovery codes, mail or a link."""


def resolves(address: str) -> bool:
    try:
        resolve(address)
    except Resolver404:
        return False
    return True


def parents(address: str) -> list[str]:
    """'/a/b/c/' -> ['/a/b/', '/a/']."""
    parts = address.strip("/").split("/")
    return ["/" + "/".join(parts[:length]) + "/" for length in range(len(parts) - 1, 0, -1)]


def test_parents_of_each_address_exist(
    cast: Any, arguments: dict[str, Any], sessions: dict[str, str]
) -> None:
    above = {one for name in NAMES for one in parents(filled_in(name, arguments))}
    assert [one for one in sorted(above) if not resolves(one)] == []
    answers = {}
    for address in above:
        if address.startswith(OF_A_STATE):
            continue
        with undone(sessions["alice"]) as client:
            answers[address] = client.get(address, follow=True).status_code
    assert len(above) > len(PAGES)
    assert {one: code for one, code in answers.items() if code not in (200, *NEEDS_MORE)} == {}


def test_the_redirect_to_the_list_keeps_the_query(cast: Any, sessions: dict[str, str]) -> None:
    with undone(sessions["alice"]) as client:
        assert client.get("/runs/?state=failed&q=a%20b").url == "/?state=failed&q=a%20b"
