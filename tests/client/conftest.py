"""The same queue as the tests of the web, and the real server with a token for it."""

from dataclasses import dataclass

import pytest

from tests.builders import Cast, a_cast, a_token
from tests.webapp.conftest import queue_in_memory
from tests.webapp.stream_server import a_server
from webapp.accounts.models import Scope

__all__ = ["queue_in_memory"]


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
def site(served, transactional_db, var_directory):
    cast = a_cast()
    token = a_token(
        cast.bob, cast.project, Scope.RUNS_WRITE, Scope.TELEMETRY_WRITE, Scope.DATASETS_WRITE
    )
    yield Site(f"http://127.0.0.1:{served.port}", token, cast)
    served.wait_until_idle()
