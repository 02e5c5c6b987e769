"""The drill of outages: the database, the broker or a disk of a site goes away while a run is under
way. `/healthz` and `/readyz` tell the truth, pages and REST say what is wrong, the run goes on, and
nothing of it is lost.

Web process, worker, Postgres and Redis are processes of this module: one site for its tests. The
engine is the small one.
"""

from __future__ import annotations

import mmap
import os
import shlex
import subprocess
import sys
from collections import Counter
from contextlib import closing, contextmanager

import httpx
import psycopg
import pytest

from engine.events.log import FILE_NAME, read_all
from tests.helpers.database import a_migrated_postgres
from tests.helpers.ports import a_port
from tests.helpers.rest_runs import (
    FIRST_ACCOUNT,
    PASSWORD,
    a_new_project,
    events_of,
    signed_in,
    started,
    state_of,
)
from tests.helpers.site import Server
from tests.helpers.small_disk import SmallDisk
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import let_go, small_engine, steps_counted
from tests.workers.test_worker import needs_redis
from webapp import disk
from webapp.operations.readiness import CHECKS, MIN_FREE_BYTES
from workers.local.service_commands import worker_command

pytestmark = [
    pytest.mark.large,
    pytest.mark.slow,
    pytest.mark.service,
    pytest.mark.redis,
    needs_redis,
]
MIB = 1 << 20
ROOM = MIN_FREE_BYTES + 64 * MIB
ENGINE = {"steps": 6, "hold_every": 2}
"""It waits within the steps 2, 4 and 6 until it is let go."""


class Redis:
    def __init__(self, folder):
        self.port, self.folder, self._process = a_port(), folder, None
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self):
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [*command, "--dir", str(self.folder)], stdout=subprocess.DEVNULL
        )

    def stop(self):
        self._process.kill()
        self._process.wait(30 * patience())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("outages")


@pytest.fixture(scope="module")
def redis(folder):
    server = Redis(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def postgres(folder, request):
    """A server of this module's own, with the address of its database."""
    server = a_migrated_postgres(folder / "postgres", request.config.cache.mkdir("databases"))
    server.url = server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def small_disk(folder):
    """The disk of the data directory; it has room."""
    made = SmallDisk(folder / "var", ROOM, 0o700)
    yield made
    made.unmount()


@pytest.fixture(scope="module")
def artifact_disk(small_disk):
    """A disk of the artifacts alone; it has room."""
    made = SmallDisk(small_disk.path / "artifacts", ROOM, 0o700)
    yield made
    made.unmount()


@pytest.fixture(scope="module")
def site(small_disk, artifact_disk, postgres, redis):
    with Site(small_disk.path, postgres, redis).running() as site:
        yield site


class Site:
    """Web process and worker, and the first account in its browser."""

    def __init__(self, var, postgres, redis):
        self.var = var
        self.environment = {
            "GROVE_VAR": str(var), "DATABASE_URL": postgres.url, "BROKER_URL": redis.url,
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            # Every request waits so long, also where patience makes other deadlines longer.
            "GROVE_DATABASE_CONNECTION_SECONDS": "5",
            "GROVE_ENGINE_COMMAND": shlex.join(small_engine(**ENGINE)),
        }  # fmt: skip
        self.web = Server(var, postgres.url, self.environment, var.with_name("web.log"))
        self.worker_log = var.with_name("worker.log")

    @contextmanager
    def running(self):
        environment = {**os.environ, **self.environment}
        words = [sys.executable, "-m", "webapp.manage", *FIRST_ACCOUNT]
        subprocess.run(words, env=environment, check=True, timeout=120 * patience())
        with self.worker_log.open("wb") as log:
            worker = subprocess.Popen(worker_command(), env=environment, stdout=log, stderr=log)
        try:
            self.web.start()
            eventually(lambda: self.failing() == set(), "a site that is ready")
            with closing(signed_in(self.web.url)) as self.browser:
                self.project = a_new_project(self.browser)
                yield self
            assert worker.poll() is None, self.worker_log.read_text()
        finally:
            worker.kill()
            worker.wait(30 * patience())
            self.web.kill()

    def failing(self):
        """The names of the checks that fail; the status has to be of them."""
        answer = httpx.get(f"{self.web.url}/readyz", timeout=60 * patience())
        checks = answer.json()["checks"]
        assert set(checks) == set(CHECKS)
        names = {name for name, word in checks.items() if word != "ok"}
        assert answer.status_code == (503 if names else 200)
        assert answer.json()["status"] == ("failing" if names else "ok")
        return names

    def health(self):
        return httpx.get(f"{self.web.url}/healthz", timeout=60 * patience()).status_code

    @contextmanager
    def outage(self, *names):
        """After its begin, which is before the block, the checks of these names fail; once the
        block has ended it, none does."""
        eventually(lambda: self.failing() == set(names), f"{names} to fail", 60)
        yield
        eventually(lambda: self.failing() == set(), f"{names} to be well again", 120)

    def start(self):
        return started(self.browser, self.project)

    def a_held_run(self):
        """A run that waits within its second step."""
        run = self.start()
        eventually(lambda: counted(events_of(self.browser, run))["step.start"] == 2, "step 2", 200)
        return run

    def folder(self, run):
        return self.var / "runs" / run

    def goes_on(self, run, to):
        """Lets the engine go on to this step, in which it waits again; the log shows it there."""
        let_go(self.folder(run), to - 1)
        log = self.folder(run) / FILE_NAME
        eventually(lambda: log.read_bytes().count(b'"step.start"') == to, f"step {to}", 60)

    def check_whole(self, run):
        """Lets the run go to its end: one engine did all of it, and every event is stored once."""
        let_go(self.folder(run))
        eventually(lambda: state_of(self.browser, run) == "finished", "the run's end", 200)
        stored = events_of(self.browser, run)
        written = list(read_all(self.folder(run)))
        assert [(seq, kind) for seq, _, kind, _ in stored] == [(e.seq, e.kind) for e in written]
        assert [e.seq for e in written] == list(range(1, len(written) + 1))
        found = counted(stored)
        assert found["step.end"] == ENGINE["steps"] and found["run.resumed"] == 0, found
        states = [payload["state"] for _, _, kind, payload in stored if kind == "run.state"]
        assert states == ["starting", "running", "finished"]


def counted(events):
    return Counter(kind for _, _, kind, _ in events)


def test_a_database_that_goes_away_takes_no_run_and_no_event_along(site, postgres):
    run = site.a_held_run()
    postgres.stop()
    with site.outage("database", "migrations"):
        assert site.health() == 503
        page = site.browser.get(f"/runs/{run}/")
        assert page.status_code == 503 and "The database does not answer" in page.text
        assert "Nothing is lost. Try again in a few seconds." in page.text
        refusal = site.browser.get(f"/api/v1/runs/{run}")
        assert refusal.status_code == 503
        assert refusal.headers["Content-Type"] == "application/problem+json"
        assert refusal.json()["detail"].startswith("The database does not answer.")
        site.goes_on(run, 4)
        assert postgres.start() == postgres.url
    assert site.health() == 200
    site.check_whole(run)


def test_a_schema_that_is_behind_is_not_ready(site, postgres):
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        (last,) = admin.execute(
            "DELETE FROM django_migrations WHERE id = (SELECT max(id) FROM django_migrations) "
            "RETURNING (app, name)"
        ).fetchone()
        with site.outage("migrations"):
            admin.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())", last
            )


def test_a_broker_that_goes_away_with_its_messages_delays_new_runs_alone(site, redis):
    run = site.a_held_run()
    redis.stop()
    with site.outage("broker"):
        assert site.health() == 200
        assert site.browser.get(f"/runs/{run}/").status_code == 200
        late = site.start()
        site.goes_on(run, 4)
        redis.start()
    site.check_whole(run)
    eventually(lambda: state_of(site.browser, late) == "running", "the run to be taken", 200)
    site.check_whole(late)


def test_a_full_disk_of_artifacts_refuses_uploads_and_stops_no_run(site, artifact_disk):
    run = site.a_held_run()
    artifact_disk.resize(MIB)
    with site.outage("artifacts"):
        assert site.health() == 200
        assert site.browser.get(f"/runs/{run}/").status_code == 200
        content = os.urandom(2 * MIB)
        upload = uploaded(site, content)
        for _ in range(2):
            refusal = site.browser.post(f"{upload}/finish")
            assert refusal.status_code == disk.STATUS, refusal.text
            assert refusal.json()["detail"] == disk.FULL
        site.goes_on(run, 4)
        artifact_disk.resize(ROOM)
    assert site.browser.post(f"{upload}/finish").status_code == 200
    stored = [path for path in artifact_disk.path.rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in stored] == [content]
    site.check_whole(run)


def uploaded(site, content):
    """Sends a file without finishing it; returns the path of the upload."""
    new = {"project": site.project, "kind": "dataset", "name": "a.jsonl", "size": len(content)}
    begun = site.browser.post("/api/v1/uploads", json=new)
    assert begun.status_code == 201, begun.text
    upload = f"/api/v1/uploads/{begun.json()['id']}"
    headers = {"Upload-Offset": "0", "Content-Type": "application/octet-stream"}
    sent = site.browser.patch(upload, content=content, headers=headers)
    assert sent.status_code == 200, sent.text
    return upload


def test_a_full_data_directory_fails_a_run_with_the_remedy_and_it_resumes(site, small_disk):
    run = site.a_held_run()
    small_disk.resize(ROOM - small_disk.free() + mmap.PAGESIZE)  # for the file that lets it go
    with site.outage("disk"):
        assert site.health() == 200
        let_go(site.folder(run), 2)
        eventually(lambda: row(site, run)["state"] == "failed", "the run to fail", 200)
        assert "free space below GROVE_VAR, then resume the run" in row(site, run)["error"]
        page = site.browser.get(f"/runs/{run}/")
        assert page.status_code == 200
        small_disk.resize(ROOM)
    let_go(site.folder(run))
    assert site.browser.post(f"/api/v1/runs/{run}/resume").status_code == 200
    eventually(lambda: state_of(site.browser, run) == "finished", "the run's end", 200)
    stored = events_of(site.browser, run)
    assert [seq for seq, *_ in stored] == list(range(1, len(stored) + 1))
    assert steps_counted(site.folder(run)) == list(range(1, ENGINE["steps"] + 1))


def row(site, run):
    return site.browser.get(f"/api/v1/runs/{run}").json()
