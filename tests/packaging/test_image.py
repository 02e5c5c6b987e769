"""Tests of what the image runs, on a real Postgres and a real Redis, and of the job for Slurm.

The entry point runs on a root that cannot be written to, under an unknown account without HOME,
with its secrets in files (`image.py`). With all of its processes it is large; what it refuses is
not.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.helpers.ports import a_port
from tests.helpers.waiting import eventually, patience
from tests.packaging.builds import ROOT
from tests.packaging.image import ENTRYPOINT, UNKNOWN, Container, as_account, needs_containment
from tests.workers.engines import SCRIPT, let_go, small_engine
from tests.workers.test_worker import needs_redis

TOKEN = "a-token-of-16-chars"


@pytest.fixture
def redis_url(tmp_path):
    port = a_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    with subprocess.Popen([*command, "--dir", str(tmp_path)], stdout=subprocess.DEVNULL) as server:
        yield f"redis://127.0.0.1:{port}/0"
        server.terminate()


@pytest.fixture
def an_empty_database(postgres_url):
    """It admits accounts without a name, too, which peer authentication cannot."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        rules = Path(admin.execute("SHOW hba_file").fetchone()[0])
        before = rules.read_text()
        rules.write_text(f"local deployed all trust\n{before}")
        admin.execute("SELECT pg_reload_conf()")
        admin.execute("CREATE DATABASE deployed TEMPLATE template0")
        yield postgres_url.replace("/grove?", "/deployed?")
        admin.execute("DROP DATABASE deployed WITH (FORCE)")
        rules.write_text(before)
        admin.execute("SELECT pg_reload_conf()")


def secrets(folder, **values):
    """Returns the variables that name a file of each secret."""
    folder.mkdir()
    for name, text in values.items():
        (folder / name).write_text(f"{text}\n")
    return {f"{name}_FILE": str(folder / name) for name in values}


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.service
@pytest.mark.redis
@needs_redis
@needs_containment
def test_the_image_migrates_serves_and_works(elsewhere, an_empty_database, redis_url, tmp_path):
    port, metrics = a_port(), a_port()
    engine = shlex.join([str(elsewhere.python), str(SCRIPT), "steps=2"])
    container = Container(elsewhere, tmp_path / "var", {
        "BROKER_URL": redis_url, "GROVE_PORT": str(port), "GROVE_ENGINE_COMMAND": engine,
        "DJANGO_SUPERUSER_PASSWORD": "a long pass phrase",
        "GROVE_WORKER_METRICS": f"127.0.0.1:{metrics}",
        **secrets(tmp_path / "secrets", DATABASE_URL=an_empty_database,
                  GROVE_SECRET_KEY="k" * 40, GROVE_METRICS_TOKEN=TOKEN),
    })  # fmt: skip
    done = container.run("grove", "upgrade", "--check")
    assert done.returncode == 1 and "pending" in done.stdout, done.stderr
    done = container.run("migrate")
    assert done.returncode == 0, done.stderr
    account = ("--noinput", "--username", "owner", "--email", "owner@example.org")
    done = container.run("grove", "manage", "createsuperuser", *account)
    assert done.returncode == 0, done.stderr
    address, bearer = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
    with (
        container.role("web", tmp_path / "web.log") as web,
        container.role("worker", tmp_path / "worker.log") as worker,
    ):
        eventually(lambda: answers(f"{address}/readyz"), "a ready web process", 200)
        assert httpx.get(f"{address}/readyz").json()["checks"]["broker"] == "ok"
        with closing(signed_in(address)) as browser:
            run = started_run(browser)
            eventually(lambda: state(browser, run) == "finished", "the run's end", 200)
        at_worker = f"http://127.0.0.1:{metrics}/metrics"
        for url, name in ((f"{address}/metrics", "grove_queue_runs"), (at_worker, "grove_job")):
            eventually(lambda url=url: answers(url, bearer), url)
            assert name in httpx.get(url, headers=bearer).text
        assert httpx.get(f"{address}/metrics").status_code == 404
        below = httpx.get(f"{address}/runs/", headers={"X-Forwarded-Prefix": "/grove"})
        assert below.status_code == 501 and "only at the root of a host name" in below.text
    assert worker.returncode == 0, (tmp_path / "worker.log").read_text()
    assert web.returncode in (0, -signal.SIGTERM), (tmp_path / "web.log").read_text()
    lines = (tmp_path / "web.log").read_text().splitlines()
    assert any(json.loads(line)["message"] for line in lines if line.startswith("{"))
    run_dir = container.var / "runs" / run
    assert run_dir.stat().st_uid == UNKNOWN and not run_dir.stat().st_mode & 0o077
    assert not (container.var / "secret_key").exists(), "the key is the one of the file"


@pytest.mark.large
@pytest.mark.service
@needs_containment
@pytest.mark.parametrize("limited", [False, True])
def test_the_image_counts_the_memory_of_its_control_group(elsewhere, tmp_path, limited):
    with control_group("memory", "memory.limit_in_bytes", 700 << 20) as group:
        container = Container(elsewhere, tmp_path / "var", {})
        program = "from engine.resources.machine_memory import machine_memory as m; print(m())"
        command = container.command("python", "-c", program)
        if limited:
            command = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *command]
        done = subprocess.run(
            command, env=container.environment, capture_output=True, text=True,
            timeout=120 * patience(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (int(done.stdout) == 700 << 20) == limited


@contextmanager
def control_group(controller, file, value):
    """A group of this test's own below the one that it is in; skips the test where none may be."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    names = [line.split(":")[2] for line in lines if f":{controller}:" in line]
    if not names:
        pytest.skip(f"no control groups of version 1 for {controller}")
    own = Path("/sys/fs/cgroup", controller, names[0].strip("/"))
    group = own / f"grove-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / file).write_text(str(value))
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    yield group
    eventually(lambda: not (group / "cgroup.procs").read_text(), "an empty group")
    group.rmdir()


@needs_containment
def test_a_data_directory_that_cannot_be_written_to_is_refused_in_a_sentence(tmp_path):
    folder = tmp_path / "var"
    folder.mkdir()
    done = subprocess.run(
        [*as_account(UNKNOWN), "sh", str(ENTRYPOINT), "true"],
        env={"PATH": os.environ["PATH"], "GROVE_VAR": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 73
    expected = f"GROVE_VAR = '{folder}': account {UNKNOWN} cannot write there; mount a volume"
    assert expected in done.stderr


def test_what_cannot_be_written_to_is_replaced_and_the_rest_is_kept(tmp_path):
    def variables(**given):
        words = ["sh", str(ENTRYPOINT), "env"]
        env = {"PATH": os.environ["PATH"], "GROVE_VAR": str(tmp_path / "var"), **given}
        lines = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        return dict(line.split("=", 1) for line in lines.splitlines())

    home, var = tmp_path / "home", tmp_path / "var"
    home.mkdir()
    kept = variables(HOME=str(home), TMPDIR=str(home))
    assert kept["HOME"] == kept["TMPDIR"] == str(home)
    replaced = variables(HOME="/proc/nowhere", TMPDIR="/nowhere")
    assert replaced["HOME"] == str(var / "home") and replaced["TMPDIR"] == str(var / "tmp")
    assert variables()["HOME"] == str(var / "home")
    assert (var / "home").stat().st_mode & 0o777 == 0o700


def signed_in(address):
    """A browser with which the first account has signed in by its password."""
    browser = httpx.Client(base_url=address, timeout=60 * patience(), follow_redirects=True)
    page = browser.get("/sign-in/")
    form = {"login": "owner", "password": "a long pass phrase"}
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
    sent = browser.post("/sign-in/", data={**form, "csrfmiddlewaretoken": token})
    assert sent.status_code == 200 and browser.cookies.get("sessionid"), sent.text[:2000]
    browser.headers["X-CSRFToken"] = browser.cookies["csrftoken"]
    return browser


def started_run(browser):
    workspace = browser.post("/api/v1/workspaces", json={"name": "Deployed"})
    assert workspace.status_code == 201, workspace.text
    below = f"/api/v1/workspaces/{workspace.json()['slug']}/projects"
    project = browser.post(below, json={"name": "Here"})
    assert project.status_code == 201, project.text
    new = {"project": project.json()["id"], "name": "In a container", "recipe": "demo"}
    sent = browser.post("/api/v1/runs", json=new)
    assert sent.status_code == 201, sent.text
    return sent.json()["id"]


def state(browser, run):
    said = browser.get(f"/api/v1/runs/{run}").json()
    assert said["state"] != "failed", said
    return said["state"]


def answers(url, headers=None):
    try:
        return httpx.get(url, headers=headers, timeout=10 * patience()).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("ends", ["by itself", "by SIGTERM"])
def test_the_job_of_slurm_hands_on_signals_and_the_engine_s_status(tmp_path, ends):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "lease").touch()
    options = {"steps": 1} if ends == "by itself" else {"steps": 1, "hold_at": 1}
    engine = shlex.join(small_engine(**options))
    grove = tmp_path / "grove"
    grove.write_text(f'#!/bin/sh\n[ "$1" = train ] && exec {engine} "$2" --lease-seconds 60\n')
    grove.chmod(0o755)
    requeued = tmp_path / "requeued"
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" >{requeued}\n')
    (tmp_path / "scontrol").chmod(0o755)
    environment = {
        **os.environ, "GROVE_BIN": str(grove), "GROVE_LAUNCHER": "env", "SLURM_JOB_ID": "17",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }  # fmt: skip
    job = subprocess.Popen(
        ["bash", str(ROOT / "deploy" / "slurm" / "train.sbatch"), str(run_dir)],
        env=environment, cwd=ROOT,
    )  # fmt: skip
    if ends == "by SIGTERM":
        log = run_dir / "events.jsonl"
        eventually(lambda: log.exists() and b"step.start" in log.read_bytes(), "a step")
        job.terminate()
    try:
        assert job.wait(120 * patience()) == (0 if ends == "by itself" else 3)
        assert requeued.exists() == (ends == "by SIGTERM")
        assert not requeued.exists() or requeued.read_text() == "requeue 17\n"
    finally:
        let_go(run_dir)
        job.kill()
