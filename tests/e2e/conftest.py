"""A site with a sample run and a browser, shared by the tests of pages."""

from __future__ import annotations

import os
from collections import deque

import pytest

from tests.browser.chromium import Faults, chromium
from tests.browser.sample_log import Sample, sample_events
from tests.browser.site import SampleRun, Server

SAMPLE = Sample(seed=3, steps=3, trees=4, nodes=5, failure_share=0.0)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        # Playwright keeps an event loop in this thread, which Django takes for async code.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        yield browser
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def server(django_db_setup, postgres_url, tmp_path_factory):
    """One server for all: what a test stores is gone after it, the server does not mind."""
    from django.db import connection

    name = connection.settings_dict["NAME"]
    url = postgres_url.replace("/grove?", f"/{name}?")
    server = Server(tmp_path_factory.mktemp("var"), url)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def run(transactional_db):
    return SampleRun(SAMPLE)


@pytest.fixture
def log():
    """What has not been shipped yet."""
    return deque(sample_events(SAMPLE))


@pytest.fixture
def faults():
    return Faults()
