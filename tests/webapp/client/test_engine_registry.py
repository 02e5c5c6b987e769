"""Tests of `--agents registry:NAME@VERSION` of the engine's commands, against the real server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.inference.agents import inference_config, team_of
from engine.policy.starters import starter_directory
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.jsonl import save_problems
from tests.helpers.builders import a_config, a_model_folder, a_run, a_token
from tests.helpers.waiting import patience
from webapp.accounts.models import Scope
from webapp.projects.services import create_project
from webapp.registry.model_files.imports import import_folder
from webapp.registry.models import ModelVersion
from webapp.registry.promotion import promote

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(site, tmp_path, monkeypatch):
    """The files of elm v1; the engine has a token with read scope and its own cache."""
    folder = a_model_folder(tmp_path / "elm")
    import_folder(site.cast.project, "elm", folder)
    token = a_token(site.cast.vera, site.cast.project, Scope.RUNS_READ)
    monkeypatch.setenv("GROVE_ADDRESS", f"{site.address}/")
    monkeypatch.setenv("GROVE_TOKEN", token)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def contents(directory):
    return {
        path.name: path.read_bytes() for path in directory.iterdir() if path.name != "README.md"
    }


def test_a_version_is_downloaded_whole_and_once(folder, tmp_path):
    (agent,) = team_of(["registry:elm@1"])
    (kept,) = (tmp_path / "cache" / "grove" / "models").iterdir()
    assert agent == {"name": "elm", "model": str(kept)}
    assert contents(kept) == contents(folder)
    before = kept.stat().st_ino, (kept / "config.json").stat().st_mtime_ns
    (again,) = team_of(["deep=registry:elm@v1"])
    assert again == {"name": "deep", "model": str(kept)}
    assert before == (kept.stat().st_ino, (kept / "config.json").stat().st_mtime_ns)
    assert [path.name for path in kept.parent.iterdir()] == [kept.name], "no draft is left"


def test_a_team_of_versions_is_one_that_an_engine_can_start(folder, site):
    import_folder(site.cast.project, "oak", starter_directory("oak"))
    config = inference_config(["registry:oak@1", "starter:fern"], {"seed": 3})
    assert [agent.name for agent in config.agents] == ["oak", "fern"]


def test_an_alias_is_followed_and_a_runs_agent_keeps_role_and_sampling(folder, site):
    agents = [{"name": "oak", "model": "starter:oak", "role": "Be brief.",
               "sampling": {"temperature": 0.25}}]  # fmt: skip
    config = a_config().model_dump(mode="json") | {"agents": agents}
    version = ModelVersion.objects.get()
    ModelVersion.objects.filter(pk=version.pk).update(
        run=a_run(site.cast, config=config), agent="oak"
    )
    promote(version.model, "champion", version, "It is the first.", site.cast.alice)
    (agent,) = team_of(["registry:elm@champion"])
    assert (agent["name"], agent["role"]) == ("elm", "Be brief.")
    assert agent["sampling"] == {"temperature": 0.25}


def test_an_unavailable_version_is_reported_with_the_remedy(
    folder, site, tmp_path, monkeypatch, capsys
):
    import_folder(create_project(site.cast.project.workspace, "Elms", "elms"), "ash", folder)
    for reference, part in {
        "registry:elm": "write registry:NAME@NUMBER",
        "registry:elm@9": "404",
        "registry:elm@best": "no alias best; its aliases: none",
        "registry:lm@1": "sees no model lm",
        "registry:ash@1": "sees no model ash",  # of another project than the token's
    }.items():
        with pytest.raises(ValueError, match=part):
            team_of([reference])
    monkeypatch.setenv("GROVE_TOKEN", "wrong")
    with pytest.raises(ValueError, match=r"401.*GROVE_TOKEN"):
        team_of(["registry:elm@1"])
    monkeypatch.setenv("GROVE_ADDRESS", "http://127.0.0.1:1")
    with pytest.raises(ValueError, match="GROVE_ADDRESS"):
        team_of(["registry:elm@1"])
    monkeypatch.delenv("GROVE_TOKEN")
    file = tmp_path / "p.jsonl"
    file.write_text("{}\n")
    assert main(["search", "--problem", str(file), "--agents", "registry:elm@1"]) == 2
    assert "set GROVE_TOKEN" in capsys.readouterr().err


def test_a_file_that_is_not_what_the_server_lists_is_not_kept(folder, tmp_path, monkeypatch):
    version = ModelVersion.objects.get()
    version.files.filter(name="config.json").update(sha256="0" * 64)
    with pytest.raises(ValueError, match="registry:elm@1"):
        team_of(["registry:elm@1"])
    assert list((tmp_path / "cache" / "grove" / "models").iterdir()) == []


def searched(out, *agents):
    """The tree of a whole search by the command, a deterministic function of seed and models."""
    command = [sys.executable, "-m", "engine", "search", "--problem", str(out.with_name("p.jsonl"))]
    command += ["--agents", *agents, "--nodes", "6", "--no-early-stop", "--seed", "4", "--json"]
    command += ["--out", str(out), "--set", "compute.deterministic=true"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300 * patience()
    )
    assert done.returncode in (0, 1), done.stderr
    data, tree = json.loads(done.stdout), json.loads(out.read_text())
    assert data["nodes_written"] == len(tree["nodes"]) == 6 and data["failure"] is None
    return tree


@pytest.mark.large
@pytest.mark.slow
def test_a_downloaded_version_searches_as_the_files_that_it_was_made_of(site, tmp_path, folder):
    """Runs the whole command against the running site, of which it has only address and token."""
    import_folder(site.cast.project, "oak", starter_directory("oak"))
    save_problems(tmp_path / "p.jsonl", GeneratedProblems(5).first(Split.TEST, 1))
    assert not (tmp_path / "cache").exists()
    downloaded = searched(tmp_path / "downloaded.json", "registry:oak@1")
    (kept,) = (tmp_path / "cache" / "grove" / "models").iterdir()
    assert contents(kept) == contents(starter_directory("oak"))
    local = searched(tmp_path / "local.json", "starter:oak")
    assert figures(downloaded) == figures(local)
    assert len({node["program"] for node in downloaded["nodes"]}) > 1


def figures(tree):
    """Everything that does not depend on the clock."""
    kept = ("agent", "parent", "program", "public", "output_ids", "logprobs", "prompt_ids")
    return [{name: node[name] for name in kept} for node in tree["nodes"]]
