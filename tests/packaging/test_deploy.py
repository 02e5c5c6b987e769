"""Tests of the files in `deploy/` that start nothing: names, ports, commands and limits agree.

`test_image.py` runs what they run, `test_helm.py` renders the chart.
"""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

import webapp
from engine.config.deadlines import ENGINE_STOP, KILL, PATIENCE
from engine.run.own_ray import ray_settings
from tests.helpers.bucket_server import a_bucket_server
from tests.packaging.builds import ROOT
from webapp.client.local import ENGINE_VERBS, SERVER_VERBS
from webapp.config.secret_files import SECRETS
from workers.local.service_commands import worker_command

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "grove"
ENTRYPOINT = DEPLOY / "entrypoint.sh"
SERVICE_KEYS = {
    "build", "cap_drop", "command", "cpus", "depends_on", "deploy", "env_file", "environment",
    "healthcheck", "image", "mem_limit", "networks", "ports", "profiles", "read_only", "restart",
    "secrets", "security_opt", "shm_size", "stop_grace_period", "tmpfs", "volumes",
}  # fmt: skip
"""Keys of a service in compose.yaml that these tests know: a typing error is none of them."""
OF_THESE_FILES = {"GROVE_BIN", "GROVE_LAUNCHER", "GROVE_PUBLIC_PORT"}
WRITTEN_SECRET = re.compile(r"(PASSWORD|SECRET|KEY|TOKEN)(: |=)(?!\$\{)[^\s/{]")


@cache
def known_variables():
    meanings = tomllib.loads((ROOT / "docs" / "environment.toml").read_text())
    described = {name for section in meanings.values() for name in section}
    return described | {f"{name}_FILE" for name in SECRETS}


def compose(name="compose.yaml"):
    return yaml.safe_load((DEPLOY / name).read_text())


def roles():
    return set(re.findall(r"^(\w+)\)$", ENTRYPOINT.read_text(), re.MULTILINE))


def texts():
    files = (file for file in DEPLOY.rglob("*") if file.is_file())
    return {file.relative_to(DEPLOY).as_posix(): file.read_text() for file in files}


def test_every_variable_is_documented():
    pattern = re.compile(r"\b(GROVE_[A-Z0-9_]+|DATABASE_URL\w*|BROKER_URL\w*)\b")
    for name, text in texts().items():
        assert set(pattern.findall(text)) <= known_variables() | OF_THESE_FILES, name


def test_no_secret_is_written():
    for name, text in texts().items():
        if not name.endswith((".sh", ".sbatch")):
            assert not WRITTEN_SECRET.search(text), name
    assert WRITTEN_SECRET.search("GROVE_S3_KEY=abc") and WRITTEN_SECRET.search("A_TOKEN: abc")


def test_every_command_of_grove_exists():
    verbs = {*ENGINE_VERBS, *SERVER_VERBS, "doctor"}
    command = re.compile(r"(?:exec |bin/|\[)grove[ ,\"]+(\w+)|\"\$grove\" (\w+)")
    found = {one or other for text in texts().values() for one, other in command.findall(text)}
    assert {"upgrade", "manage", "train"} <= found <= verbs


def test_every_worker_is_started_with_the_same_options():
    options = worker_command()[1:]
    options[options.index("--concurrency") + 1] = "N"
    expected = shlex.join(options)
    text = ENTRYPOINT.read_text().replace("\\\n", " ")
    of_image = re.search(r"exec python (-m celery .*)", text)[1].replace(
        '"${GROVE_RUNS_AT_ONCE:-1}"', "N"
    )
    unit = (DEPLOY / "systemd" / "grove-worker.service").read_text()
    of_unit = re.search(r"^ExecStart=\S+/python (.*)$", unit, re.MULTILINE)[1]
    assert shlex.join(shlex.split(of_image)) == expected
    assert of_unit.replace("--concurrency 1", "--concurrency N") == expected


def test_whoever_stops_a_worker_waits_for_its_engines_checkpoints():
    needed = ENGINE_STOP.default + 30 + KILL.default
    unit = (DEPLOY / "systemd" / "grove-worker.service").read_text()
    seconds = [
        int(compose()["services"]["worker"]["stop_grace_period"].removesuffix("s")),
        int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]),
        int(re.search(r"TERM@(\d+)", (DEPLOY / "slurm" / "train.sbatch").read_text())[1]),
    ]
    for template in ("worker.yaml", "raycluster.yaml"):
        text = (CHART / "templates" / template).read_text()
        seconds += map(int, re.findall(r"terminationGracePeriodSeconds: (\d+)", text))
    assert len(seconds) == 5 and min(seconds) >= needed


# Dockerfile


def copied(dockerfile):
    lines = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", dockerfile, re.MULTILINE)
    return {name for line in lines for name in line.split()}


def test_the_image_copies_what_exists_and_its_context_has_nothing_else():
    text = (DEPLOY / "Dockerfile").read_text()
    assert all((ROOT / name).exists() for name in copied(text))
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert copied(text) == {line[1:] for line in allowed if line.startswith("!")}
    assert allowed[0] == "*"


def test_both_targets_have_a_pinned_base_and_an_account_that_is_not_root():
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python:3\.\d+-slim-\w+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    stages = dict(re.findall(r"^FROM (?:\S+) AS (\S+)\n((?:(?!FROM).*\n?)*)", text, re.MULTILINE))
    bases = dict((name, base) for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", text, re.M))
    for target in ("cpu", "cuda"):
        assert bases[target] == "base" and bases[bases[target]] == "${BASE}"
        users = re.findall(r"^USER (.*)$", stages["base"] + stages[target], re.MULTILINE)
        assert users[-1:] == ["10001:10001"], target
        assert f"--from=packages-{target} " in stages[target]
        assert "-c /constraints.txt" in stages[f"packages-{target}"]
    assert text.rstrip().endswith(stages["cpu"].rstrip()), "built without --target"


def test_extras_of_the_image_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"\$\{wheel\}\[([\w,]+)\]", (DEPLOY / "Dockerfile").read_text())
    assert len(named) == 2
    assert {one for part in named for one in part.split(",")} <= {*project["optional-dependencies"]}


# compose.yaml


def test_every_role_of_compose_is_one_of_the_entry_point():
    services = compose()["services"]
    own = {name for name, one in services.items() if one["image"] == "grove:cpu"}
    assert own - {"bucket"} == roles() == {"migrate", "web", "worker"}
    for name in own:
        one = services[name]
        assert name == "bucket" or one["command"] == [name]
        assert one["read_only"] and one["cap_drop"] == ["ALL"]
        assert "grove:/var/lib/grove" in one["volumes"]


def test_what_compose_refers_to_exists():
    stack = compose()
    services = stack["services"]
    (uid, _) = re.search(r"^USER (\d+):(\d+)$", (DEPLOY / "Dockerfile").read_text(), re.M).groups()
    assert int(uid) > 0
    for name, one in services.items():
        assert one.keys() <= SERVICE_KEYS, name
        needed = one.get("depends_on", {})
        assert needed.keys() <= services.keys()
        for other, condition in needed.items():
            if condition["condition"] == "service_healthy":
                assert "healthcheck" in services[other], other
            if set(services[other].get("profiles", [])) - set(one.get("profiles", [])):
                assert condition["required"] is False, f"{name} without {other}'s profile"
        sources = {volume.partition(":")[0] for volume in one.get("volumes", [])}
        files = {source for source in sources if source.startswith("./")}
        assert sources - files <= stack["volumes"].keys()
        assert all((DEPLOY / file).is_file() for file in files), name
        assert set(one.get("secrets", [])) <= stack["secrets"].keys()
        for value in (one.get("environment") or {}).values():
            if value.startswith("/run/secrets/"):
                assert value.removeprefix("/run/secrets/") in one["secrets"], name
    assert compose("compose.cuda.yaml")["services"].keys() <= services.keys()


def test_ports_of_compose_agree():
    services = compose()["services"]
    dockerfile, nginx = (DEPLOY / "Dockerfile").read_text(), (DEPLOY / "nginx.conf").read_text()
    ports = re.search(r"^EXPOSE (\d+) (\d+) (\d+)$", dockerfile, re.MULTILINE).groups()
    web, metrics, of_engine = ports
    assert set(re.findall(r"proxy_pass http://web:(\d+);", nginx)) == {web}
    assert f"{{GROVE_PORT:-{web}}}" in ENTRYPOINT.read_text()
    assert f"127.0.0.1:{web}/readyz" in services["web"]["healthcheck"]["test"][-1]
    assert services["worker"]["environment"]["GROVE_WORKER_METRICS"] == f"0.0.0.0:{metrics}"
    assert services["proxy"]["ports"] == [
        f"${{GROVE_PUBLIC_PORT:-8080}}:{re.search('listen ([0-9]+);', nginx)[1]}"
    ]
    address = services["proxy"]["networks"]["grove"]["ipv4_address"]
    assert services["web"]["environment"]["GROVE_TRUSTED_PROXIES"] == address
    job, of_engines = compose("prometheus.yml")["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"web:{web}"]}]
    assert job["dns_sd_configs"] == [{"names": ["worker"], "type": "A", "port": int(metrics)}]
    assert services["worker"]["environment"]["GROVE_ENGINE_METRICS"] == f"0.0.0.0:{of_engine}"
    (at_worker,) = of_engines["dns_sd_configs"]
    assert at_worker == {"names": ["worker"], "type": "A", "port": int(of_engine)}
    for one in (job, of_engines):
        token = one["authorization"]["credentials_file"].removeprefix("/run/secrets/")
        assert token in services["prometheus"]["secrets"]
    file = services["worker"]["environment"]["GROVE_ENGINE_METRICS_TOKEN_FILE"]
    assert file == of_engines["authorization"]["credentials_file"]


def test_the_store_of_the_stack_is_the_one_that_grove_is_given():
    services = compose()["services"]
    example = (DEPLOY / "grove.env.example").read_text()
    host, port = re.search(r"GROVE_S3_ENDPOINT=http://(\w+):(\d+)", example).groups()
    store = services[host]["environment"]
    assert store["VGW_PORT"] == f":{port}"
    assert store["ROOT_ACCESS_KEY"] == "${GROVE_S3_KEY:-}"
    assert store["ROOT_SECRET_KEY"] == "${GROVE_S3_SECRET:-}"
    assert services["bucket"]["profiles"] == services[host]["profiles"] == [host]


def test_the_secrets_of_the_stack_are_created_once_and_are_what_compose_mounts(tmp_path):
    folder = tmp_path / "secrets"
    command = ["sh", str(DEPLOY / "create_secrets.sh"), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    first = {file.name: file.read_text() for file in folder.iterdir()}
    subprocess.run(command, check=True, capture_output=True)
    assert {file.name: file.read_text() for file in folder.iterdir()} == first
    mounted = {one["file"].partition("/")[2] for one in compose()["secrets"].values()}
    assert first.keys() == mounted == compose()["secrets"].keys()
    password = first["postgres_password"].strip()
    assert first["database_url"] == f"postgresql://grove:{password}@postgres/grove\n"
    assert all(re.fullmatch("[0-9a-f]{64}\n", first[n]) for n in first if n != "database_url")
    assert len(set(first.values())) == len(first)
    assert folder.stat().st_mode & 0o777 == 0o700
    ignored = (DEPLOY / ".gitignore").read_text().split()
    assert {"secrets/", "grove.env"} == set(ignored)


@pytest.mark.large
def test_the_bucket_of_the_stack_is_created_once_and_a_failure_names_its_cause(monkeypatch, capsys):
    create = runpy.run_path(str(DEPLOY / "create_bucket.py"))["main"]
    monkeypatch.setenv("GROVE_S3_KEY", "key")
    monkeypatch.setenv("GROVE_S3_SECRET", "secret")
    with a_bucket_server() as address:
        monkeypatch.setenv("GROVE_S3_ENDPOINT", address)
        for bucket, status, line in (
            ("grove", 0, "the bucket grove exists"),
            ("grove", 0, "the bucket grove exists"),
            ("", 0, "GROVE_S3_BUCKET is not set: nothing to do"),
            ("ab", 1, "GROVE_S3_BUCKET = 'ab' cannot be created: "),
        ):
            monkeypatch.setenv("GROVE_S3_BUCKET", bucket)
            assert create() == status
            output = capsys.readouterr()
            assert (output.err if status else output.out).startswith(line)


def test_the_proxy_keeps_the_limits_of_the_documentation():
    documented = (ROOT / "docs" / "operations.md").read_text()
    block = re.search(r"```nginx\n(.*?)```", documented, re.DOTALL)[1]
    ours = (DEPLOY / "nginx.conf").read_text()
    limits = re.findall(r"^\s*((?:client|send|limit|proxy)_(?!pass)\w* [^;]+;)", block, re.M)
    assert len(limits) > 10
    for directive in limits:
        assert directive in ours, directive
    assert "location ~ ^/api/v1/(runs|shared)/[^/]+/events$" in ours


# Chart, as text


def values_files():
    return sorted(CHART.glob("values*.yaml"))


def test_the_schema_of_the_chart_accepts_its_values_and_names_every_one():
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    Draft7Validator.check_schema(schema)
    for file in values_files():
        errors = [one.message for one in Draft7Validator(schema).iter_errors(load(file))]
        assert errors == [], file.name
    assert schema["properties"].keys() - {"global"} == load(CHART / "values.yaml").keys()
    wrong = {"ray": {"groups": [{"name": "gpu"}]}, "web": {"replica": 2}, "hosts": []}
    for key, value in wrong.items():
        assert list(Draft7Validator(schema).iter_errors({key: value})), key


def load(file):
    return yaml.safe_load(file.read_text())


def templates():
    return "\n".join(file.read_text() for file in sorted((CHART / "templates").iterdir()))


def test_templates_read_values_that_exist_and_definitions_that_exist():
    values = load(CHART / "values.yaml")
    for path in re.findall(r"\.Values((?:\.\w+)+)", templates()):
        reached = values
        for key in path.strip(".").split("."):
            assert key in reached, path
            reached = reached[key] if isinstance(reached[key], dict) else {}
    defined = set(re.findall(r'define "([\w.]+)"', templates()))
    assert set(re.findall(r'include "([\w.]+)"', templates())) == defined


def test_the_chart_runs_the_roles_of_the_image_on_its_ports_and_of_this_version(monkeypatch):
    monkeypatch.delenv(PATIENCE, raising=False)
    text = templates()
    assert set(re.findall(r"args: \[(\w+)\]", text)) == roles()
    chart = load(CHART / "Chart.yaml")
    assert chart["version"] == chart["appVersion"] == webapp.__version__
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    assert load(CHART / "values.yaml")["ray"]["version"] == pins["ray"]
    ports = set(map(int, re.findall(r"(?:containerPort|9101|port): (\d+)", text)))
    assert ports == {8000, 9101, 5432, 6379}
    written = dict(re.findall(r'name: (RAY_\w+), value: "([^"]*)"', text))
    assert written.pop("RAY_ADDRESS") == "127.0.0.1:6379"
    assert written == ray_settings()


# Linters, where they are installed


def program(name):
    """Returns the program beside this Python, or on PATH; skips the test without one."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    return found or pytest.skip(f"{name} is not installed")


@pytest.mark.large
def test_hadolint_finds_nothing_in_the_dockerfile_and_something_in_a_worse_one(tmp_path):
    hadolint = program("hadolint")

    def linted(file):
        done = subprocess.run([hadolint, file], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    assert linted(DEPLOY / "Dockerfile") == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text("FROM python\nRUN cd /tmp && pip install django\n")
    status, said = linted(worse)
    assert status == 1 and "DL3006" in said and "DL3003" in said


@pytest.mark.large
@pytest.mark.parametrize("unit", ["grove-web.service", "grove-worker.service"])
def test_systemd_verifies_the_units(unit, tmp_path):
    analyze = program("systemd-analyze")
    text = (DEPLOY / "systemd" / unit).read_text()

    def verified(content):
        # The checked machine has no account `grove` and nothing in /opt.
        content = re.sub(r"/opt/grove/bin/\w+", "/bin/true", content)
        (tmp_path / unit).write_text(content.replace("User=grove", "User=root"))
        done = subprocess.run(
            [analyze, "verify", "--recursive-errors=no", str(tmp_path / unit)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, [line for line in done.stderr.splitlines() if unit in line]

    assert verified(text) == (0, [])
    assert verified(text.replace("KillMode=", "KillMod=").replace("RestartSec=", "RestartSek="))[1]
