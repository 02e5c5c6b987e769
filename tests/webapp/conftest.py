"""The cast, and a queue that is not the developer's own."""

import pytest

from tests.builders import Cast, a_cast
from webapp.celery import app


@pytest.fixture(scope="session", autouse=True)
def queue_in_memory():
    """Messages that these tests send must not reach a worker that happens to run here."""
    app.conf.update(broker_url="memory://", broker_transport_options={})


@pytest.fixture
def cast(db) -> Cast:
    return a_cast()
