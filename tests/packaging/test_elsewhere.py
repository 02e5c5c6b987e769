"""Tests of `pip install grove-rl[server]` outside a checkout: commands, pages and their links."""

from __future__ import annotations

import csv
import json
import os
import posixpath
import re
import shlex
import socket
import stat
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

import webapp
from tests.e2e.stack import Stack
from tests.helpers.database import a_migrated_postgres
from tests.helpers.ports import a_port
from tests.helpers.waiting import patience
from tests.packaging.builds import PACKAGES, ROOT
from tests.workers.engines import SCRIPT
from workers.management.commands.up import DEMO_RECIPE

pytestmark = pytest.mark.service
LINKED = re.compile(r"""<(?:link|script|img)\b[^>]*?(?:href|src)=["']([^"']+)["']""")
IMPORTED = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)["'](\.{1,2}/[^"']+\.js)["']""")
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def small_engine(elsewhere) -> str:
    """The command of an engine without models, on the installed packages."""
    return shlex.join([str(elsewhere.python), str(SCRIPT), "steps=2"])


@pytest.fixture(scope="module")
def stack(elsewhere, request):
    """`grove up` in the default data directory, with a small engine of the environment's Python."""
    var = elsewhere.home / ".local" / "share" / "grove"
    a_migrated_postgres(var / "postgres", request.config.cache.mkdir("databases"))
    given = elsewhere.variables(GROVE_ENGINE_COMMAND=small_engine(elsewhere))
    command = [str(elsewhere.grove), "up"]
    with Stack(var, given, command=command, directory=elsewhere.home) as stack:
        yield stack


@pytest.fixture(scope="module")
def browser(stack):
    with httpx.Client(
        base_url=stack.address, follow_redirects=True, timeout=60 * patience()
    ) as browser:
        page = browser.get(stack.sign_in_link())
        assert page.status_code == 200 and "/runs/" in str(page.url)
        yield browser


def test_the_installed_package_is_imported(elsewhere):
    program = f"import {', '.join(PACKAGES)}; print({', '.join(f'{p}.__file__' for p in PACKAGES)})"
    files = elsewhere.run(elsewhere.python, "-c", program).stdout.split()
    assert files == [str(elsewhere.packages / name / "__init__.py") for name in PACKAGES]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "{home}/.local/share/grove"),
        ({"XDG_DATA_HOME": "{home}/data"}, "{home}/data/grove"),
        ({"XDG_DATA_HOME": "data"}, "{home}/.local/share/grove"),
        ({"GROVE_VAR": "here"}, "{home}/here"),
    ],
)
def test_an_installed_grove_keeps_its_data_in_the_user_s_directory(elsewhere, given, expected):
    program = (
        "import os; from webapp.config.environment import read_grove_var as r; print(r(os.environ))"
    )
    given = {name: value.format(home=elsewhere.home) for name, value in given.items()}
    done = elsewhere.run(elsewhere.python, "-c", program, **given)
    assert done.stdout.strip() == expected.format(home=elsewhere.home), done.stderr


def test_every_asset_of_every_page_is_served_as_it_is_in_the_checkout(stack, browser):
    pages = ["/sign-in/", "/", str(browser.get("/").url), *links_of(browser.get("/"))]
    assets = set()
    for page in dict.fromkeys(pages):
        response = browser.get(page)
        assert response.status_code == 200, page
        assets |= {urljoin(page, link) for link in LINKED.findall(response.text)}
    served = served_with_imports(browser, {a for a in assets if "/static/" in a})
    names = {re.sub(r"^.*/static/[0-9a-f]{12}/", "", address) for address in served}
    own = {name for name in names if (ROOT / "static" / name).is_file()}
    assert {"css/grove.css", "img/grove.svg", "js/pages/run-page.js", "js/stream/fold.js"} <= own
    assert {posixpath.dirname(name) for name in own} >= {
        "css",
        "js/pages",
        "js/lib",
        "img",
        "vendor/uplot",
    }
    for address, response in served.items():
        name = re.sub(r"^.*/static/[0-9a-f]{12}/", "", address)
        assert response.status_code == 200, address
        kind = KINDS[posixpath.splitext(name)[1]]
        assert response.headers["content-type"].startswith(kind), address
        if name in own:
            assert response.content == (ROOT / "static" / name).read_bytes()


def links_of(response: httpx.Response) -> list[str]:
    """Addresses of Grove's own pages that a page links to."""
    links = re.findall(r'<a\b[^>]*?href="(/[^"#?]*)"', response.text)
    return [link for link in links if not link.startswith(("/api/", "/sign-out"))]


def served_with_imports(browser: httpx.Client, assets: set[str]) -> dict[str, httpx.Response]:
    """The responses of these addresses, and of every module that one of them imports."""
    served: dict[str, httpx.Response] = {}
    pending = sorted(assets)
    while pending:
        if (address := pending.pop()) in served:
            continue
        served[address] = browser.get(address)
        if address.endswith(".js"):
            pending += [urljoin(address, name) for name in IMPORTED.findall(served[address].text)]
    return served


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused by Postgres")
def test_as_root_postgres_finds_its_programs_below_a_directory_closed_to_others(elsewhere, stack):
    closed = [p for p in elsewhere.packages.parents if not p.stat().st_mode & stat.S_IXOTH]
    assert closed, "pytest's own directory lets nobody else in"
    status = Path(f"/proc/{stack.find('pginstall18').pid}/status").read_text()
    # Of root's rights it keeps only the one to traverse directories, CAP_DAC_OVERRIDE.
    assert re.search(r"^CapEff:\t0*2$", status, re.M) and re.search(r"^CapPrm:\t0*2$", status, re.M)
    assert not re.search(r"^Uid:\t0\b", status, re.M)


def test_the_demo_run_is_made_from_the_packaged_recipe(stack, browser):
    run = browser.get("/api/v1/runs").json()["runs"][0]
    assert run["name"] == "Two agents, one tree"
    config = browser.get(f"/api/v1/runs/{run['id']}").json()["config"]
    assert config["recipe"] == DEMO_RECIPE
    assert (stack.var / "runs" / run["id"]).is_dir()


@pytest.mark.large
def test_the_demo_runs_to_its_end_and_prints_its_figures(elsewhere, stack, request):
    var = elsewhere.home / "demo"
    a_migrated_postgres(var / "postgres", request.config.cache.mkdir("databases"))
    command = (elsewhere.grove, "demo", "--headless", "--var", var)
    engine = small_engine(elsewhere)
    done = elsewhere.run(*command, seconds=200, GROVE_ENGINE_COMMAND=engine)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(next(line for line in done.stdout.splitlines() if line[:1] == "{"))
    events = figures["events"]
    assert events["emitted"] == events["stored"] == events["delivered"] > 5
    assert figures["versions"]["grove"] == webapp.__version__


def test_the_doctor_reports_no_problem_and_the_running_grove(elsewhere, stack):
    done = elsewhere.run(
        elsewhere.grove, "doctor", "--json", seconds=300, GROVE_PORT=str(stack.port)
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stdout
    for name in (
        "python", "grove-rl", "grove-rl[engine]", "grove-rl[server]", "torch", "ray", "gpus",
        "sandbox", "data directory", "disk", "postgres", "broker", "port",
    ):  # fmt: skip
        assert checks[name]["status"] in ("ok", "warning"), checks[name]
    assert checks["port"]["text"] == f"{stack.port}, in use by a running Grove"
    assert checks["data directory"]["text"] == str(stack.var)


@pytest.mark.large
def test_the_doctor_fails_with_a_remedy_for_each_thing_that_is_wrong(elsewhere):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        done = elsewhere.run(
            elsewhere.grove, "manage", "doctor", "--json", GROVE_PORT=str(port),
            BROKER_URL=f"redis://:secret@127.0.0.1:{a_port()}/0",
            DATABASE_URL="postgresql://me:secret@127.0.0.1:9/grove",
        )  # fmt: skip
    failed = {c["name"]: c for c in json.loads(done.stdout) if c["status"] == "failed"}
    assert done.returncode == 1 and set(failed) == {"postgres", "broker", "port"}
    assert all(check["remedy"] for check in failed.values())
    assert f"Port {port} is in use" in failed["port"]["text"]
    assert "secret" not in done.stdout


@pytest.mark.large
def test_engine_verbs_and_django_s_commands_are_handed_on(elsewhere):
    done = elsewhere.run(elsewhere.grove, "prepare", "run", "demo", "training.steps=3")
    config = json.loads((elsewhere.home / "run" / "config.json").read_text())
    assert done.returncode == 0 and config["training"]["steps"] == 3
    done = elsewhere.run(elsewhere.grove, "prepare", "run", "no-such-recipe")
    assert done.returncode == 2 and "no-such-recipe" in done.stderr
    done = elsewhere.run(elsewhere.grove, "manage", "makemigrations", "--check", "--dry-run")
    assert "No changes detected" in done.stdout, done.stderr


def test_the_current_directory_is_not_imported(elsewhere):
    trap = elsewhere.home / "engine.py"
    trap.write_text("raise SystemExit('the wrong engine')")
    try:
        done = elsewhere.run(elsewhere.grove, "prepare", "other-run", "demo")
    finally:
        trap.unlink()
    assert done.returncode == 0, done.stderr


def test_no_file_is_written_next_to_the_installed_packages(elsewhere, stack, browser):
    assert stack.stop() == [], stack.said()
    assert "the next `grove up` continues" in stack.said()
    (record,) = elsewhere.packages.glob("grove_rl-*.dist-info/RECORD")
    with record.open(newline="") as file:
        installed = {row[0] for row in csv.reader(file)}
    there = {
        path.relative_to(elsewhere.packages).as_posix()
        for name in PACKAGES
        for path in (elsewhere.packages / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert there <= installed
    assert not (elsewhere.packages / "var").exists()
