"""Tests of `pip install grove-rl` alone: client and command without Django, torch and Ray."""

from __future__ import annotations

import json
import tomllib

import pytest

import webapp
from tests.packaging.builds import ROOT
from webapp.client.local import ENGINE_VERBS, SERVER_VERBS

pytestmark = pytest.mark.service

HEAVY = ("django", "torch", "ray", "celery", "numpy", "pydantic")


def one_line(text: str) -> str:
    (line,) = text.strip().splitlines()
    return line


def test_the_client_is_imported_where_nothing_else_is_installed(client_only):
    absent = f"[name for name in {HEAVY} if importlib.util.find_spec(name)]"
    program = f"import importlib.util, grove, webapp.client as c; print(c.__file__, {absent})"
    done = client_only.run(client_only.python, "-I", "-c", program)
    file, imported = done.stdout.split(maxsplit=1)
    assert file.startswith(str(client_only.packages)) and imported.strip() == "[]", done.stderr


def test_the_base_is_three_small_packages(client_only):
    with (ROOT / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)["project"]["dependencies"]
    assert [text.split("~")[0].split(">")[0] for text in declared] == [
        "httpx", "msgspec", "packaging",
    ]  # fmt: skip


def test_help_names_every_verb_and_the_version_is_the_package_s(client_only):
    help_text = client_only.run(client_only.grove, "--help").stdout
    for verb in ("runs", "start", "doctor", "engine", *ENGINE_VERBS, *SERVER_VERBS):
        assert f"\n    {verb}" in help_text
    assert client_only.run(client_only.grove, "--version").stdout == f"grove {webapp.__version__}\n"


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["up"], "server"),
        (["manage", "migrate"], "server"),
        (["train", "run"], "engine"),
        (["engine", "search", "--help"], "engine"),
        (["search", "--agents", "starter:oak", "--problem", "p.json"], "engine"),
        (["doctor", "demo"], "engine"),
        (["push-hub", "1", "1", "forest/elm"], "hub"),
    ],
)
def test_a_verb_without_its_extra_says_what_to_install(client_only, words, extra):
    given = {"GROVE_TOKEN": "grove_x", "GROVE_HUB": "1"}  # checked before the extra
    done = client_only.run(client_only.grove, *words, **given)
    assert done.returncode == 2 and done.stdout == ""
    assert one_line(done.stderr).endswith(f"Run: pip install 'grove-rl[{extra}]'")


def test_the_doctor_calls_what_was_never_installed_absent(client_only):
    done = client_only.run(client_only.grove, "doctor", "--json")
    report = json.loads(done.stdout)
    status = {check["name"]: check["status"] for check in report["checks"]}
    assert (done.returncode, report["ok"]) == (0, True)
    assert status == {
        "python": "ok", "grove-rl": "ok", "grove-rl[engine]": "absent",
        "grove-rl[server]": "absent", "login": "absent",
    }  # fmt: skip


def test_the_doctor_fails_on_an_extra_that_is_there_in_another_version(client_only, tmp_path):
    for name in ("httpx", "ray"):
        folder = tmp_path / f"{name}-0.1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    done = client_only.run(client_only.grove, "doctor", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "failed   grove-rl: httpx~=0.28.1 (0.1 is installed)" in done.stdout
    assert "failed   grove-rl[engine]: " in done.stdout and "ray~=2.60.0 (0.1 is" in done.stdout
    assert "2 of 5 checks failed" in done.stdout


def test_without_a_login_the_client_says_how_to_get_one(client_only):
    done = client_only.run(client_only.grove, "runs")
    assert done.returncode == 1
    assert one_line(done.stderr) == "grove: create a token under API tokens, then: grove login"


def test_an_unreachable_server_has_its_own_exit_status(client_only):
    given = {"GROVE_ADDRESS": "http://127.0.0.1:9", "GROVE_TOKEN": "grove_x"}
    done = client_only.run(client_only.grove, "runs", **given)
    assert done.returncode == 3 and "the server cannot be reached" in one_line(done.stderr)
    done = client_only.run(client_only.grove, "doctor", **given)
    assert done.returncode == 0 and "warning  login: http://127.0.0.1:9" in done.stdout
