"""Fixtures of the page tests: a site with a sample run, and a shared browser."""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack

import pytest

from tests.helpers.chromium import PageErrors, a_context, chromium
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.site import SampleRun, Server
from tests.helpers.waiting import eventually
from tests.webapp.telemetry.stream_server import a_session

SAMPLE = Sample(seed=3, steps=3, trees=4, nodes=5, failure_share=0.0)


@pytest.fixture(scope="package")
def browser():
    with chromium() as browser:
        # Playwright keeps an event loop in this thread, which Django mistakes for async code.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        yield browser
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def serves(django_db_setup, postgres_url, tmp_path_factory):
    """Factory of servers on the tests' database, which accept sessions created here:
    serves(**environment)."""
    from django.conf import settings
    from django.db import connection

    name = connection.settings_dict["NAME"]
    url = postgres_url.replace("/grove?", f"/{name}?")
    shared = {"GROVE_SECRET_KEY": settings.SECRET_KEY, "GROVE_OPERATORS": "alice"}
    return lambda **more: Server(tmp_path_factory.mktemp("var"), url, {**shared, **more})


@pytest.fixture(scope="package")
def server(serves):
    """One server for all files: a test's rows are deleted after it, which the server tolerates."""
    server = serves()
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="package")
def profile(browser, server):
    """One browser context for all tests, which fetches a page's files once. Its first page stays
    empty and clears the browser's storage between tests."""
    context = a_context(browser, base_url=server.url)
    context.new_page()
    yield context
    context.close()


@pytest.fixture(scope="package")
def emptied(profile, server):
    """Clears what the browser stores for the site, except its cached files."""
    session = profile.new_cdp_session(profile.pages[0])
    everything = {"origin": server.url, "storageTypes": "all"}
    return lambda: session.send("Storage.clearDataForOrigin", everything)


@pytest.fixture
def window(profile, emptied, server, run, faults):
    """Opens pages in which the run's owner is signed in: window(path, width, height, **media).

    At the end, no page may have reported a fault; the browser keeps only the site's cached files.
    """
    session = a_session(run.user).session_key
    profile.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])

    def opened(path: str, width: int = 1280, height: int = 900, **media: str):
        page = profile.new_page()
        page.set_viewport_size({"width": width, "height": height})
        # Animations of a live run repaint sixty times a second, here on the CPU.
        page.emulate_media(**{"reduced_motion": "reduce", **media})
        faults.watch(page, server.url)
        page.goto(path)
        return page

    yield opened
    for page in profile.pages[1:]:
        page.close()
    emptied()
    assert faults.recorded == []


@pytest.fixture
def run(transactional_db):
    yield SampleRun(SAMPLE)
    until_the_server_rests()


def until_the_server_rests() -> None:
    """Waits until no request of a closed page queries the database: its locks would block emptying
    the tables for the next test."""
    from django.db import connection

    def rested() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND (state <> 'idle'"
                " OR state_change > clock_timestamp() - interval '0.3 seconds')"
            )
            return cursor.fetchone()[0] == 0

    eventually(rested, "the server to rest")


@pytest.fixture(scope="package")
def whole_log():
    """Every event of the sample run; tests do not modify them."""
    return tuple(sample_events(SAMPLE))


@pytest.fixture
def log(whole_log):
    """Events that have not been shipped yet."""
    return deque(whole_log)


@pytest.fixture
def faults():
    return PageErrors()


@pytest.fixture
def start_worker(transactional_db, server, ray_address, monkeypatch):
    """Starts a Celery worker of the server's broker, with the real engine. Until the test ends, it
    takes what the site queues; before the start, tests can check the pages of queued work.

    The engines join the Ray of the suite, and fork what it has preloaded."""
    from tests.workers.test_worker import Worker
    from workers.runs.engine_process import DEFAULT_COMMAND

    monkeypatch.setenv("RAY_ADDRESS", ray_address)
    with ExitStack() as stack:
        workers: list[Worker] = []

        def start() -> Worker:
            worker = Worker(server.var, "filesystem://localhost", DEFAULT_COMMAND)
            workers.append(stack.enter_context(worker))
            return worker

        yield start
        assert [worker.close() for worker in workers] == [0] * len(workers)
