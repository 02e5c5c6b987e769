"""Fixtures of all tests, such as the one real Postgres behind every test with a database."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import turns
from tests.helpers.measures import OPTION, Results
from tests.helpers.services import leave_out
from tests.helpers.waiting import VARIABLE, measured_patience

# Set before anything imports torch: the suite runs in two processes, possibly on two cores, where
# more threads only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The suite starts hundreds of interpreters: the first one compiles the modules that all import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-services", action="store_true", help="only tests that need no service"
    )
    parser.addoption(OPTION, type=Path, metavar="FILE", help="write what each test cost there")


def pytest_configure(config: pytest.Config) -> None:
    """Sets the patience of the run, which the processes of the suite and all that they start
    inherit."""
    os.environ.setdefault(VARIABLE, str(measured_patience()))
    is_worker = hasattr(config, "workerinput")
    config.pluginmanager.register(Results(None if is_worker else config.getoption(OPTION)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return turns.from_both_ends(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_sessionstart(session: pytest.Session) -> None:
    folder = common_folder(session.config)
    session.config.pluginmanager.register(turns.OneSlowAtATime(folder))


def common_folder(config: pytest.Config) -> Path:
    """The temporary folder that all processes of this run of the suite share."""
    factory: pytest.TempPathFactory = config._tmp_path_factory
    folder = factory.getbasetemp()
    return folder.parent if hasattr(config, "workerinput") else folder


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """Collects without the garbage collector, which would go through all modules and tests again
    and again, and excludes them from its later passes: a fifth of the CPU time of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        draw_by_the_seed_alone()


def draw_by_the_seed_alone() -> None:
    """Leaves out of what hypothesis draws the constants in those modules of this project that the
    process happens to have imported: a seed would draw other values beside other tests, and a fresh
    clone parses all modules at the first draw (20 CPU seconds)."""
    if providers := sys.modules.get("hypothesis.internal.conjecture.providers"):
        providers._get_local_constants = providers.Constants


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Omits what a run does not select, and sorts the rest."""
    if config.getoption("--without-services"):
        leave_out(config, items)
    turns.slow_files_first(items)


@pytest.fixture(scope="session", autouse=True)
def queue_in_memory():
    """Keeps messages of a test process away from any worker that runs on this machine. Set before
    the first message, because Celery keeps its producer."""
    from webapp.celery import app

    app.conf.update(broker_url="memory://", broker_transport_options={})


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory, request):
    """URL of an embedded Postgres that lives as long as the session."""
    from tests.helpers.database import a_migrated_postgres

    templates = request.config.cache.mkdir("databases")
    server = a_migrated_postgres(tmp_path_factory.mktemp("database") / "postgres", templates)
    yield server.start()
    server.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url):
    """Points Django at it; pytest-django then creates its `test_` database there, as a copy of the
    migrated database."""
    from django.conf import settings
    from django.db import connections

    from webapp.config.environment import database

    expected = database(postgres_url)
    settings.DATABASES["default"].update(expected)
    connections["default"].settings_dict.update(expected)
    connections["default"].settings_dict["TEST"]["TEMPLATE"] = expected["NAME"]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup):
    """Omits what Django recreates after every test that empties the tables, and no test reads:
    content types and permissions."""
    from django.contrib.auth.management import create_permissions
    from django.contrib.contenttypes.management import create_contenttypes
    from django.db.models.signals import post_migrate

    of_permissions = "django.contrib.auth.management.create_permissions"
    assert post_migrate.disconnect(create_permissions, dispatch_uid=of_permissions)
    assert post_migrate.disconnect(create_contenttypes)
    empty_by_rows()


def empty_by_rows() -> None:
    """Makes the connection empty its tables after a test as `tests.helpers.emptying` does."""
    from django.db import connection

    from tests.helpers.emptying import EmptyingByRows

    connection.ops = EmptyingByRows(connection)


@pytest.fixture(scope="session")
def ray_folder(request):
    """The folder, common to all processes of the suite, of the token of every Ray that its tests
    start; all of them listen on the loopback interface alone."""
    from tests.helpers.clusters import closed_to_others

    folder = common_folder(request.config)
    with closed_to_others(folder):
        yield folder


@pytest.fixture(scope="session")
def ray_address(ray_folder):
    """Address of a Ray node that the engines of many tests join, sequentially or concurrently, also
    those of a second test process.

    Starting a Ray per engine would take a fifth of the time of a short run.
    """
    from tests.helpers.clusters import shared_ray

    with shared_ray(ray_folder) as address:
        yield address


@pytest.fixture
def var_directory(tmp_path: Path, settings):
    """A GROVE_VAR of the test's own: runs, artifacts and everything else."""
    for name, value in var_settings(tmp_path).items():
        setattr(settings, name, value)
    return tmp_path


def var_settings(folder: Path) -> dict[str, Any]:
    """The settings that put all stored files below the folder."""
    from django.conf import settings

    from webapp.config.environment import read_artifact_storage

    artifacts = read_artifact_storage({}, folder / "artifacts")
    return {
        "GROVE_VAR": folder,
        "RUNS_DIR": folder / "runs",
        "UPLOADS_DIR": folder / "uploads",
        "MODEL_FOLDERS_DIR": folder / "model-versions",
        "ARTIFACT_COPIES_DIR": folder / "artifact-copies",
        "PROBLEM_INDEX_DIR": folder / "problem-indexes",
        "STORAGES": {**settings.STORAGES, "artifacts": artifacts},
    }
