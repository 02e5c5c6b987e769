"""The drill of a fresh machine: the image's processes, a training, a backup, a restoration
elsewhere, the same run replayed. Engine and sandbox are the real ones.

Nothing is there but Postgres and Redis of packages and the wheel with its requirements. Each
process is started by the image's entry point as a container runs it (`image.py`): a read-only root,
an unknown account without capabilities and HOME, the system calls of Docker's default profile,
secrets in files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.helpers.ports import a_port
from tests.helpers.rest_runs import (
    FIRST_ACCOUNT,
    a_new_project,
    events_of,
    signed_in,
    started,
    state_of,
)
from tests.helpers.waiting import eventually
from tests.packaging.image import UNKNOWN, VAR, needs_containment
from tests.packaging.prometheus import a_prometheus, here, needs_prometheus, value_of
from tests.packaging.site_of_image import TOKEN, Site, answers, socket_folder
from tests.workers.test_worker import needs_redis

pytestmark = [
    pytest.mark.large, pytest.mark.slow, pytest.mark.service, pytest.mark.redis, needs_redis,
    needs_containment, needs_prometheus,
]  # fmt: skip
SMALL = {
    "training.steps": 2, "training.minutes": None, "training.trees_per_step": 2,
    "training.validate_every": 2, "training.checkpoint_every": 1, "search.nodes_per_tree": 4,
    "problems.train": 50, "problems.validation": 2, "problems.test": 2, "sandbox.workers": 1,
}  # fmt: skip
AGENTS = {"oak", "fern"}
SECONDS = 600
"""Of a training of such settings."""


@pytest.fixture(scope="module")
def redis_port(tmp_path_factory):
    port, folder = a_port(), tmp_path_factory.mktemp("redis")
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    with subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL) as server:
        yield port
        server.terminate()


@pytest.fixture(scope="module")
def databases(postgres_url):
    """Two empty ones. They admit accounts without a name, too, which peer authentication cannot."""
    names = ("deployed", "restored")
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        rules = Path(admin.execute("SHOW hba_file").fetchone()[0])
        before = rules.read_text()
        sockets = socket_folder(postgres_url)
        mode = sockets.stat().st_mode & 0o777
        sockets.chmod(0o711)
        rules.write_text(f"local {','.join(names)} all trust\n{before}")
        admin.execute("SELECT pg_reload_conf()")
        for name in names:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield [postgres_url.replace("/grove?", f"/{name}?") for name in names]
        for name in names:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        rules.write_text(before)
        admin.execute("SELECT pg_reload_conf()")
        sockets.chmod(mode)


@pytest.fixture(scope="module")
def sites(elsewhere, databases, redis_port, tmp_path_factory):
    """Two installations that share nothing: the second is empty."""
    folder = tmp_path_factory.mktemp("sites")
    folder.chmod(0o755)
    return [
        Site(elsewhere, folder / name, url, f"redis://127.0.0.1:{redis_port}/{number}")
        for number, (name, url) in enumerate(zip(("here", "there"), databases, strict=True))
    ]


@dataclass
class Trained:
    """What the first installation did before it was stopped."""

    run: str
    shown: tuple
    did: list
    scraped: dict[str, float]


@pytest.fixture(scope="module")
def migrated(sites):
    first, _ = sites
    done = first.container.run("grove", "upgrade", "--check")
    assert done.returncode == 1 and "pending" in done.stdout, done.stderr
    first.does("migrate")
    first.does("grove", "manage", *FIRST_ACCOUNT)
    return first


@pytest.fixture(scope="module")
def trained_and_backed_up(migrated):
    """A run of the first installation; a backup, made while it serves, is in its volume."""
    with (
        migrated.running() as first,
        closing(signed_in(first.address)) as browser,
        scraped(first) as values,
    ):
        project = a_new_project(browser)
        run = started(browser, project, recipe="demo", overrides=SMALL)
        eventually(lambda: state_of(browser, run) == "finished", "the run's end", SECONDS)
        eventually(lambda: values()["worker"] == values()["web"] == 1, "the end to be scraped")
        check_doors(first)
        done = Trained(run, shown(browser, run), trained(browser, run), values())
        said = first.does("grove", "backup", f"{VAR}/grove.zip")
        assert "absent" not in said, said
    return done


# In this order: each goes on where the one before it ended.
def test_the_image_migrates_an_empty_database_and_makes_the_first_account(migrated):
    assert migrated.does("grove", "upgrade", "--check")


def test_a_training_in_the_image_is_scraped_and_backed_up(migrated, trained_and_backed_up):
    values = trained_and_backed_up.scraped
    assert values["web"] == values["worker"] == 1 and values["requests"] >= 1, values
    check_left(migrated, trained_and_backed_up.run)
    events, *_ = trained_and_backed_up.shown
    said = [payload["message"] for _, _, kind, payload in events if kind == "log.line"]
    assert any("restricted" in message for message in said), said
    nodes = [payload for _, _, kind, payload in events if kind == "node.close"]
    assert len(nodes) >= 16 and any(node["verdict"] != "passed" for node in nodes)
    assert {payload["agent"] for *_, kind, payload in events if kind == "agent.update"} == AGENTS


def test_the_same_run_is_restored_elsewhere_and_replayed(sites, trained_and_backed_up):
    first, second = sites
    before = trained_and_backed_up
    carry(first.container.var / "grove.zip", second.container.var)
    assert "Restored" in second.does("grove", "restore", f"{VAR}/grove.zip")
    with second.running(), closing(signed_in(second.address)) as browser:
        assert shown(browser, before.run) == before.shown
        sent = browser.post(f"/api/v1/runs/{before.run}/clone")
        assert sent.status_code == 201, sent.text
        again = sent.json()["id"]
        eventually(
            lambda: state_of(browser, again) == "finished", "the replayed run's end", SECONDS
        )
        assert trained(browser, again) == before.did
    runs = (f"{VAR}/runs/{run}" for run in (before.run, again))
    assert "bit for bit" in second.does("python", "-m", "engine", "same", *runs)


def carry(file, var):
    """Copies a file to another volume."""
    shutil.copy2(file, var)
    os.chown(var / file.name, UNKNOWN, UNKNOWN)


def shown(browser, run):
    """What the pages of the run are made of: its events, their fold, and its row."""
    row = browser.get(f"/api/v1/runs/{run}").json()
    fold = browser.get(f"/api/v1/runs/{run}/folded").json()
    return events_of(browser, run), fold, {name: row[name] for name in ("state", "step", "name")}


def trained(browser, run):
    """What a training with these settings and this seed does, whenever and wherever it runs; nodes
    of different trees close in any order."""
    found = []
    for _, _, kind, payload in events_of(browser, run):
        if kind == "node.close":
            found.append(("node", payload["program"], payload["score"], payload["mean_logprob"]))
        elif kind == "agent.update":
            figures = (payload["loss"], payload["kl"], payload["entropy"], payload["gradient_norm"])
            found.append(("update", payload["agent"], payload["step"], *figures))
        elif kind == "eval.result":
            found.append(("evaluation", payload["split"], payload["step"], payload["agents"]))
        elif kind == "step.end":
            found.append(("step", payload["step"], payload["reward"], payload["tokens"]))
    return sorted(found, key=repr)


@contextmanager
def scraped(site):
    """A Prometheus that scrapes the site; yields a function of the values that it has read."""
    targets = {8000: site.port, 9101: site.of_worker, 9102: a_port()}
    queries = {
        "web": 'max(grove_runs{job="grove",state="finished"})',
        "requests": 'max(grove_http_requests_total{job="grove",method="POST",status="201"})',
        "worker": 'max(grove_runs_ended_total{job="grove",state="finished"})',
    }
    with a_prometheus(site.folder, here(targets, site.token_file)) as address:
        yield lambda: {name: value_of(address, query) for name, query in queries.items()}


def check_doors(site):
    """What is answered to whom."""
    assert httpx.get(f"{site.address}/readyz").json()["checks"]["broker"] == "ok"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for url in (f"{site.address}/metrics", f"http://127.0.0.1:{site.of_worker}/metrics"):
        assert answers(url, bearer) and not answers(url), url
    below = httpx.get(f"{site.address}/runs/", headers={"X-Forwarded-Prefix": "/grove"})
    assert below.status_code == 501 and "only at the root of a host name" in below.text


def check_left(site, run):
    lines = [line for line in site.log("web").splitlines() if line.startswith("{")]
    assert any(json.loads(line)["message"] for line in lines)
    of_run = [json.loads(line) for line in site.log("worker").splitlines() if run in line]
    assert any(line.get("run_id") == run for line in of_run), site.log("worker")
    run_dir = site.container.var / "runs" / run
    assert run_dir.stat().st_uid == UNKNOWN and not run_dir.stat().st_mode & 0o077
    assert not (site.container.var / "secret_key").exists(), "the key is the one of the file"
