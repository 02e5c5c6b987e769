"""Tests of upgrades: released schemas are migrated, a newer one is refused before anything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.helpers.kept_dump import DUMPS, restore_dump
from tests.helpers.ports import a_port
from tests.helpers.waiting import patience
from workers.local.service_commands import web_command, worker_command

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
pytestmark = [pytest.mark.service, pytest.mark.slow, pytest.mark.large]
KEPT = (
    "experiments_run", "telemetry_event", "accounts_user", "registry_modelversion",
    "artifacts_artifact", "accounts_apitoken", "searches_search", "projects_membership",
)  # fmt: skip


@pytest.fixture
def an_empty_database(postgres_url, request):
    """URL of a new database of the suite's server."""
    name = f"upgrade_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield postgres_url.replace("/grove?", f"/{name}?")
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def run(command, url, var):
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS * patience(),
        env={**os.environ, "DATABASE_URL": url, "GROVE_VAR": str(var), "GROVE_PORT": "0"},
    )  # fmt: skip


def manage(url, var, *words):
    return run([sys.executable, "manage.py", *words], url, var)


def counts(url):
    with psycopg.connect(url) as opened:
        rows = [opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in KEPT]
    return dict(zip(KEPT, rows, strict=True))


@pytest.mark.parametrize("dump", sorted(DUMPS.glob("*.xz")), ids=lambda path: path.name)
def test_the_schema_of_a_released_version_is_migrated_with_its_rows(
    an_empty_database, tmp_path, dump
):
    url = an_empty_database
    restore_dump(dump, url)
    before = counts(url)
    assert all(before.values()), before
    checked = manage(url, tmp_path, "upgrade", "--check")
    assert "Grove" in checked.stdout and "Postgres" in checked.stdout, checked.stderr
    is_old = checked.returncode == 1
    assert is_old == (" 0 pending" not in checked.stdout)
    assert is_old or not dump.name.startswith("0.1")
    assert counts(url) == before

    done = manage(url, tmp_path, "upgrade")
    assert done.returncode == 0, done.stdout + done.stderr
    assert counts(url) == before
    after = manage(url, tmp_path, "shell", "--no-imports", "-c", REPLAYED)
    found = json.loads(after.stdout)
    assert found["pending"] == 0
    assert found["state"] == "finished" and found["steps"] == 2 and found["nodes"] > 2


REPLAYED = """
import json
from webapp.experiments.models import Run
from webapp.operations.schema import pending
from webapp.telemetry.selectors import folded
state = folded(Run.objects.filter(events__kind="node.close").first())
nodes = sum(len(tree["nodes"]) for tree in state["trees"])
figures = {"steps": len(state["steps"]), "nodes": nodes, "state": state["run"]["state"]}
print(json.dumps({**figures, "pending": len(pending())}))
"""


def test_web_and_worker_of_an_older_version_refuse_a_newer_schema(an_empty_database, tmp_path):
    url = an_empty_database
    restore_dump(max(DUMPS.glob("*.xz")), url)
    with psycopg.connect(url) as opened:
        opened.execute(
            "INSERT INTO django_migrations (app, name, applied) "
            "VALUES ('experiments', '0999_of_tomorrow', now())"
        )
    sentence = "newer schema than Grove"
    up = [sys.executable, "manage.py", "up"]
    for command in (web_command(a_port()), worker_command(), up):
        done = run(command, url, tmp_path)
        assert done.returncode != 0
        said = done.stdout + done.stderr
        assert sentence in said and "0999_of_tomorrow" in said, said
        assert "Traceback" not in said
    done = manage(url, tmp_path, "upgrade")
    assert done.returncode == 2 and sentence in done.stdout
