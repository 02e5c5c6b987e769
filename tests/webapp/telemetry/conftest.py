"""Servers of the stream for the tests of a module."""

import pytest

from tests.webapp.telemetry.stream_server import a_server

FAR = 3600.0
"""Seconds of a deadline that no test reaches."""


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server(send=FAR, recheck=0.3, heartbeat=0.3) as served:
        yield served


@pytest.fixture
def port(served):
    yield served.port
    served.wait_until_idle()


@pytest.fixture(scope="module")
def notified_only(django_db_setup):
    """A server that looks at nothing by itself: only a notification makes it read."""
    with a_server(send=FAR, recheck=FAR, poll=FAR, watch=FAR) as served:
        yield served


@pytest.fixture
def notified_port(notified_only):
    yield notified_only.port
    notified_only.wait_until_idle()
