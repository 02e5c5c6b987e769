"""Tests of what a fork may change of its parent run; `test_resume.py` starts a fork."""

import pytest

from engine.config.run_forks import fork_errors
from engine.config.schema import parse_config


@pytest.mark.parametrize(
    "change, path",
    [
        ({"agents": [{"name": "oak", "model": "starter:fern"}]}, "agents.0.model"),
        ({"agents": [{"name": "elm", "model": "starter:oak"}]}, "agents.0.name"),
        ({"agents": [{"name": "oak", "model": "starter:oak", "lora": {}}]}, "agents.0.lora"),
        ({"compute": {"dtype": "bfloat16"}}, "compute.dtype"),
        ({"agents": [{"name": n, "model": "starter:oak"} for n in ("oak", "elm")]}, "agents"),
    ],
)
def test_a_change_of_a_setting_that_a_checkpoint_depends_on_is_refused(change, path):
    before = {"agents": [{"name": "oak", "model": "starter:oak"}]}
    old, new = (parse_config(one).model_dump(mode="json") for one in (before, before | change))
    problems = fork_errors(old, new)
    assert [problem["path"] for problem in problems] == [path]
    assert "start a new run" in problems[0]["reason"]


def test_everything_else_may_change():
    before = {"agents": [{"name": "oak", "model": "starter:oak"}]}
    other = {
        "agents": [{"name": "oak", "model": "starter:oak", "role": "Be brief.",
                    "optimizer": {"learning_rate": 0.1}, "sampling": {"temperature": 0.5}}],
        "seed": 3, "problems": {"seed": 9}, "search": {"nodes_per_tree": 2},
        "loss": {"policy": "ppo"}, "credit": {"advantage": "grpo"}, "training": {"steps": 3},
    }  # fmt: skip
    old, new = (parse_config(one).model_dump(mode="json") for one in (before, other))
    assert fork_errors(old, new) == []
