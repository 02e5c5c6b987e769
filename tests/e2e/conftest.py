"""A site with a sample run and a browser, shared by the tests of pages."""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack

import pytest

from tests.browser.chromium import Faults, chromium
from tests.browser.sample_log import Sample, sample_events
from tests.browser.site import SampleRun, Server
from tests.webapp.stream_server import a_session, wait_until

SAMPLE = Sample(seed=3, steps=3, trees=4, nodes=5, failure_share=0.0)


@pytest.fixture(scope="package")
def browser():
    with chromium() as browser:
        # Playwright keeps an event loop in this thread, which Django takes for async code.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        yield browser
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def serves(django_db_setup, postgres_url, tmp_path_factory):
    """Makes servers of the tests' database, which take sessions that are made here:
    serves(**environment)."""
    from django.conf import settings
    from django.db import connection

    name = connection.settings_dict["NAME"]
    url = postgres_url.replace("/grove?", f"/{name}?")
    shared = {"GROVE_SECRET_KEY": settings.SECRET_KEY}
    return lambda **more: Server(tmp_path_factory.mktemp("var"), url, {**shared, **more})


@pytest.fixture(scope="package")
def server(serves):
    """One server for all files: what a test stores is gone after it, the server does not mind."""
    server = serves()
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="package")
def profile(browser, server):
    """A person's browser: a file that a page needs is fetched once, not for every test. Its first
    page stays empty: by it the browser is told to forget."""
    context = browser.new_context(base_url=server.url)
    context.new_page()
    yield context
    context.close()


@pytest.fixture(scope="package")
def emptied(profile, server):
    """Empties what the browser keeps for the site, but for its files."""
    session = profile.new_cdp_session(profile.pages[0])
    everything = {"origin": server.url, "storageTypes": "all"}
    return lambda: session.send("Storage.clearDataForOrigin", everything)


@pytest.fixture
def window(profile, emptied, server, run, faults):
    """Opens pages in which the run's owner is signed in: window(path, width, height, **media).

    In the end nothing may have gone wrong on any of them, and the browser has forgotten all but the
    files of the site.
    """
    session = a_session(run.user).session_key
    profile.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])

    def opened(path: str, width: int = 1280, height: int = 900, **media: str):
        page = profile.new_page()
        page.set_viewport_size({"width": width, "height": height})
        # What breathes while a run goes on is painted sixty times a second, here by the processor.
        page.emulate_media(**{"reduced_motion": "reduce", **media})
        faults.watch(page, server.url)
        page.goto(path)
        return page

    yield opened
    for page in profile.pages[1:]:
        page.close()
    emptied()
    assert faults.told == []


@pytest.fixture
def run(transactional_db):
    yield SampleRun(SAMPLE)
    until_the_server_rests()


def until_the_server_rests() -> None:
    """Until no request of a page that is closed asks the database any more: it would lock against
    the tables being emptied for the next test."""
    from django.db import connection

    def rested() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND (state <> 'idle'"
                " OR state_change > clock_timestamp() - interval '0.3 seconds')"
            )
            return cursor.fetchone()[0] == 0

    wait_until(rested)


@pytest.fixture(scope="package")
def whole_log():
    """Every event of the sample run; events are never changed."""
    return tuple(sample_events(SAMPLE))


@pytest.fixture
def log(whole_log):
    """What has not been shipped yet."""
    return deque(whole_log)


@pytest.fixture
def faults():
    return Faults()


@pytest.fixture
def start_worker(transactional_db, server):
    """Starts a Celery worker of the server's broker, with the real engine: from then on until the
    test ends it takes what the site queues. What a page says before that can be looked at first."""
    from tests.workers.test_worker import Worker
    from workers.runs.engine_process import DEFAULT_COMMAND

    with ExitStack() as stack:
        workers: list[Worker] = []

        def start() -> Worker:
            worker = Worker(server.var, "filesystem://localhost", DEFAULT_COMMAND)
            workers.append(stack.enter_context(worker))
            return worker

        yield start
        assert [worker.close() for worker in workers] == [0] * len(workers)
