"""Tests of warnings about settings that do less than they say."""

import json

import pytest

from engine.__main__ import main
from engine.config.setting_warnings import setting_warnings
from engine.recipes import load_recipe

ONE = {"training.minibatches": 1}


@pytest.mark.parametrize(
    ("recipe", "overrides", "warns"),
    [
        ("mars2", ONE, True),
        ("mars2", {}, False),
        ("mars2", {"training.minibatches": 2}, False),
        ("grpo", ONE, True),
        ("cispo", {**ONE, "loss.clip_low": 0.5}, True),
        ("cispo", ONE, False),  # its lower limit is switched off, as in its paper
        ("demo", {**ONE, "loss.clip_low": 1.0, "loss.clip_high": 1.5}, False),
    ],
)
def test_a_loss_that_can_never_clip_is_reported_with_its_remedy(recipe, overrides, warns):
    warnings = setting_warnings(load_recipe(recipe, overrides))
    assert [one.path for one in warnings] == ["training.minibatches"] * warns
    for one in warnings:
        assert one.value == 1 and "every ratio is 1" in one.reason and "set it to 2" in one.reason


@pytest.mark.parametrize("name", ["mars2", "mars2-8b", "mars2-32b", "mars2-homogeneous",
                                  "tree-single", "marti-mars2", "marti-mars2-32b"])  # fmt: skip
def test_the_papers_recipes_can_clip(name):
    config = load_recipe(name)
    assert config.training.minibatches >= 2 and not setting_warnings(config)


def test_the_command_line_shows_the_warning_before_the_run_starts(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert main(["prepare", str(tmp_path), "dr-mas"]) == 0
    assert "warning: training.minibatches = 1: loss.policy = ppo" in capsys.readouterr().err
    main(["doctor", "dr-mas"])
    assert "warning: training.minibatches = 1: loss.policy = ppo" in capsys.readouterr().out
    main(["doctor", "dr-mas", "--json"])
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert (warning["path"], warning["value"]) == ("training.minibatches", 1)
    assert main(["prepare", str(tmp_path), "mars2"]) == 0
    assert "warning" not in capsys.readouterr().err
