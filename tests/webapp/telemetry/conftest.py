"""One server of the stream for the tests of a module."""

import pytest

from tests.webapp.telemetry.stream_server import a_server


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server(send=1.0, recheck=0.3, heartbeat=0.3) as served:
        yield served


@pytest.fixture
def port(served):
    yield served.port
    served.wait_until_idle()
