"""Tests of a web process whose database, broker or disk goes away: it says so, by name, and comes
back with them."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from tests.helpers.database import a_migrated_postgres
from tests.helpers.ports import a_port
from tests.helpers.site import Server
from tests.helpers.waiting import eventually, patience
from tests.workers.test_worker import needs_redis
from webapp.operations.readiness import CHECKS, MIN_FREE_BYTES

pytestmark = [
    pytest.mark.large,
    pytest.mark.slow,
    pytest.mark.service,
    pytest.mark.redis,
    needs_redis,
]
MIB = 1 << 20


class Redis:
    def __init__(self, folder):
        self.port, self.folder, self._process = a_port(), folder, None

    def start(self):
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [*command, "--dir", str(self.folder)], stdout=subprocess.DEVNULL
        )

    def stop(self):
        self._process.kill()
        self._process.wait(30 * patience())


@pytest.fixture
def redis(tmp_path):
    server = Redis(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def postgres(tmp_path, request):
    """A server of this test's own, with the address of its database."""
    server = a_migrated_postgres(tmp_path / "postgres", request.config.cache.mkdir("databases"))
    server.url = server.start()
    yield server
    server.stop()


@pytest.fixture
def var(tmp_path):
    """A data directory on a small disk of its own."""
    folder = tmp_path / "var"
    folder.mkdir()
    size = f"size={(MIN_FREE_BYTES + 64 * MIB) // MIB}m"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", folder])
    if mounted.returncode != 0:
        pytest.skip("needs leave to mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def site(var, postgres, redis):
    server = Server(var, postgres.url, {"BROKER_URL": f"redis://127.0.0.1:{redis.port}/0"})
    server.start()
    yield server
    server.kill()


def failing(site):
    """The names of the checks that fail; the status has to be of them."""
    answer = httpx.get(f"{site.url}/readyz", timeout=60 * patience())
    checks = answer.json()["checks"]
    assert set(checks) == set(CHECKS)
    names = {name for name, word in checks.items() if word != "ok"}
    assert answer.status_code == (503 if names else 200)
    assert answer.json()["status"] == ("failing" if names else "ok")
    return names


def health(site):
    return httpx.get(f"{site.url}/healthz", timeout=60 * patience()).status_code


@contextmanager
def outage(site, names):
    """After its begin, which is before the block, the checks of these names fail; once the block
    has ended it, none does."""
    eventually(lambda: failing(site) == names, f"{names} to fail", 60)
    yield
    eventually(lambda: failing(site) == set(), f"{names} to be well again", 60)


def test_readiness_and_health_tell_the_truth_of_database_broker_schema_and_disk(
    site, var, postgres, redis
):
    eventually(lambda: failing(site) == set(), "a site that is ready")

    postgres.stop()
    with outage(site, {"database", "migrations"}):
        assert health(site) == 503
        postgres.start()
    assert health(site) == 200

    redis.stop()
    with outage(site, {"broker"}):
        assert health(site) == 200, "pages are served without a broker"
        redis.start()

    with psycopg.connect(postgres.url, autocommit=True) as admin:
        (last,) = admin.execute(
            "DELETE FROM django_migrations WHERE id = (SELECT max(id) FROM django_migrations) "
            "RETURNING (app, name)"
        ).fetchone()
        with outage(site, {"migrations"}):
            admin.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())", last
            )

    (var / "filler").write_bytes(b"x" * 80 * MIB)
    with outage(site, {"disk"}):
        assert health(site) == 200, "pages are served from a full disk"
        (var / "filler").unlink()
