"""`package:NAME` as a model: resolved where it is installed, refused with the remedy where not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from engine.__main__ import main
from engine.config.errors import ConfigError
from engine.config.pretrained import pretrained_model
from engine.config.schema import parse_config
from engine.policy.models.load import ModelError, check_model_directory
from engine.policy.models.packages.install import install
from engine.resources.shapes import shape_of
from tests.engine.policy.packages.test_add import downloaded


@pytest.fixture
def installed(offer, index):
    """The tiny model of the test's catalogue, installed."""
    downloaded(offer())
    return install(pretrained_model("tiny"))


def test_a_package_that_is_not_installed_is_refused_with_the_command(offer, capsys):
    offer()
    with pytest.raises(ModelError, match=r"package:tiny-model: .*; run: grove models add tiny$"):
        check_model_directory("package:tiny-model")
    evaluate = ["evaluate", "--agents", "package:tiny", "--dataset", "generated"]
    assert main(evaluate) == 2
    assert "run: grove models add tiny" in capsys.readouterr().err


def test_an_unknown_package_is_refused_by_its_path():
    agents = [{"name": "a", "model": "starter:oak"}, {"name": "b", "model": "package:none"}]
    with pytest.raises(ConfigError, match=r"agents.1.model = 'package:none': no such pretrained"):
        parse_config({"agents": agents})
    with pytest.raises(ModelError, match="model = package:none: no such pretrained model"):
        check_model_directory("package:none")


def test_both_names_of_an_installed_package_are_its_directory(installed):
    assert check_model_directory("package:tiny") == installed
    assert check_model_directory("package:tiny-model") == installed
    shape = shape_of("package:tiny")
    assert shape is not None and shape.layers == 2


@pytest.mark.large
@pytest.mark.slow
def test_a_team_with_a_package_is_evaluated(installed, tmp_path):
    result = tmp_path / "result.json"
    command = ["evaluate", "--agents", "package:tiny", "starter:oak", "--dataset", "generated",
               "--problems", "2", "--nodes", "2", "--json", str(result),
               "--set", "agents.tiny.sampling.max_new_tokens=4",
               "agents.tiny.sampling.max_prompt_tokens=512"]  # fmt: skip
    # In a process of its own: fork servers of earlier tests know another catalogue.
    done = subprocess.run(
        [sys.executable, "-m", "engine", *command], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(result.read_text())
    assert measured["agents"] == {"tiny": "package:tiny", "oak": "starter:oak"}
    assert measured["figures"]["pass@1/tiny"]["nodes"] == 2
