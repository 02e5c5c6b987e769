"""Which tests need a service: Postgres, Ray, Redis, a browser, the sandbox or an index of packages;
`make check` omits them.

A test's needs follow from its fixtures and markers, so no list of tests is kept.
"""

from __future__ import annotations

import pytest

FIXTURES = frozenset({"django_db_setup", "index", "module_server", "postgres_url", "ray_address",
                      "sandbox"})  # fmt: skip
"""Fixtures that start a service; a test that depends on one needs it too."""
MARKERS = ("browser", "django_db", "redis", "service", "slow")


def needs_service(item: pytest.Item) -> bool:
    """Whether a test needs a service, or takes more than ten seconds."""
    fixtures = getattr(item, "fixturenames", ())
    return any(map(item.get_closest_marker, MARKERS)) or not FIXTURES.isdisjoint(fixtures)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that need a service, in place."""
    left = [item for item in items if needs_service(item)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if not needs_service(item)]
