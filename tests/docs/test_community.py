"""Tests of the files that a repository host reads: well-formed, current and correct."""

import re
import tomllib

import pytest
import yaml

from tests.docs.pages import ROOT


def read(path):
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def pins():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def test_hooks_have_the_versions_of_the_pins():
    hooks = {
        one["repo"].rsplit("/", 1)[-1]: one for one in read(".pre-commit-config.yaml")["repos"]
    }
    assert hooks["ruff-pre-commit"]["rev"] == f"v{pins()['ruff']}"
    assert hooks["bandit"]["rev"] == pins()["bandit"]
    assert hooks["codespell"]["rev"] == f"v{pins()['codespell']}"


def test_the_workflow_calls_the_whole_check():
    steps = read(".github/workflows/ci.yml")["jobs"]["check"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    night, check, docs = commands
    assert "python -m tests.helpers.helm" in night and " prometheus\n" in night
    (step,) = (one for one in steps if one.get("run") == night)
    assert step["if"] == "github.event_name == 'schedule'"
    assert ".ci/run ${{ github.event_name == 'schedule' && 'test-all' || 'test' }}" in check
    assert docs.endswith("make docs")
    required = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    python = next(
        step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})
    )
    assert required["requires-python"] == f">={python}"


@pytest.mark.parametrize("form", ["bug", "feature"])
def test_issue_forms_have_the_fields_that_github_requires(form):
    given = read(f".github/ISSUE_TEMPLATE/{form}.yml")
    assert given["name"] and given["description"]
    for part in given["body"]:
        assert part["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert ("id" in part) == (part["type"] != "markdown")
        assert part["attributes"].get("label") or part["attributes"].get("value")


def test_the_citation_and_the_changes_are_of_this_version():
    from webapp import __version__

    citation = read("CITATION.cff")
    assert citation["version"] == __version__
    assert citation["license"] == "Apache-2.0"
    versions = re.findall(
        r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert versions[0] == __version__
