"""Fixtures: the real server, and a token for it."""

import threading
from dataclasses import dataclass

import pytest
from django.db import connection

import grove
from tests.helpers.builders import Cast, a_cast, a_token
from tests.helpers.waiting import patience
from tests.webapp.telemetry.stream_server import a_server
from webapp.accounts.models import Scope
from webapp.experiments.models import Run
from workers.jobs.exports import write_one


@dataclass
class Site:
    address: str
    token: str
    cast: Cast

    @property
    def environment(self) -> dict[str, str]:
        return {"GROVE_ADDRESS": self.address, "GROVE_TOKEN": self.token}


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server() as served:
        yield served


@pytest.fixture
def exporter(site, var_directory):
    """Does a worker's exports until the test ends."""
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.1):
            while write_one():
                pass
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    yield
    done.set()
    thread.join(30 * patience())


@pytest.fixture
def site(served, transactional_db, var_directory):
    cast = a_cast()
    token = a_token(
        cast.bob, cast.project, Scope.RUNS_WRITE, Scope.TELEMETRY_WRITE, Scope.DATASETS_WRITE
    )
    yield Site(f"http://127.0.0.1:{served.port}", token, cast)
    served.wait_until_idle()


@pytest.fixture
def here(site, tmp_path, monkeypatch):
    """The server's login, and a folder for spools."""
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GROVE_DIR", str(tmp_path / "logs"))
    yield site
    grove.finish()


def tracked(key: str) -> Run:
    """The run that a program logs under this id."""
    return Run.objects.get(tracking__key=key)
