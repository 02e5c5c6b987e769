"""Tests of the settings: one typed tree, and errors with path and allowed values."""

import json
import math

import pytest

from engine.__main__ import main
from engine.config.errors import ConfigError
from engine.config.schema import RunConfig, parse_config, read_config
from engine.recipes import load_recipe, recipe_names

AGENT = {"name": "oak", "model": "starter:oak"}


def errors_of(data):
    with pytest.raises(ConfigError) as caught:
        parse_config(data)
    return {problem["path"]: problem for problem in caught.value.problems}


@pytest.mark.parametrize("recipe", recipe_names())
def test_every_recipe_is_possible_and_survives_its_own_record(recipe):
    config = load_recipe(recipe)
    assert config.recipe == recipe
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("search.nodes_per_tree", 0),
        ("training.steps", -1),
        ("agents.oak.optimizer.learning_rate", -1e-3),
        ("credit.shaping_lambda", 1.5),
        ("loss.policy", "nothing"),
        ("credit.advantage", "nothing"),
        ("sandbox.memory_mb", 1),
        ("compute.device", "abacus"),
        ("agents.fern.model", "starter:birch"),
    ],
)
def test_an_impossible_value_is_refused_with_its_path(path, value):
    with pytest.raises(ConfigError) as caught:
        load_recipe("demo", {path: value})
    (problem,) = caught.value.problems
    assert problem["path"] == path.replace("oak", "0").replace("fern", "1")
    assert problem["value"] == value
    assert problem["reason"]


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"compute": {"deterministic": True, "device": "cuda"}}, "set compute.device to cpu"),
        (
            {"compute": {"deterministic": True}, "training": {"minutes": 3}},
            "training.minutes = 3.0 with compute.deterministic = true",
        ),
        (
            {"compute": {"deterministic": True}, "search": {"seconds_per_tree": 3}},
            "search.seconds_per_tree = 3.0 with compute.deterministic = true",
        ),
    ],
)
def test_a_config_that_depends_on_a_clock_or_a_gpu_is_not_deterministic(sections, reason):
    (problem,) = errors_of({"agents": [AGENT], **sections}).values()
    assert reason in problem["reason"]


def test_an_unknown_setting_an_unknown_recipe_and_an_unknown_agent_are_refused():
    assert "unknown setting" in errors_of({"agents": [AGENT], "serch": {}})["serch"]["reason"]
    with pytest.raises(ConfigError, match="unknown recipe"):
        load_recipe("nothing")
    with pytest.raises(ConfigError, match="no such setting"):
        load_recipe("demo", {"agents.birch.model": "x"})


def test_a_config_error_lists_all_errors_at_once():
    errors = errors_of(
        {"agents": [AGENT], "search": {"nodes_per_tree": 0}, "training": {"steps": 0}}
    )
    assert set(errors) == {"search.nodes_per_tree", "training.steps"}


def test_an_invalid_agent_is_the_only_reported_error():
    assert set(errors_of({"agents": [AGENT | {"modle": "x"}]})) == {"agents.0.modle"}


def test_agents_must_exist_differ_and_some_must_learn():
    assert "agents" in errors_of({"agents": []})
    assert "names must differ" in str(list(errors_of({"agents": [AGENT, AGENT]}).values()))
    frozen = AGENT | {"trainable": False}
    assert "trainable" in str(list(errors_of({"agents": [frozen]}).values()))


def test_more_in_flight_than_the_budget_is_refused():
    errors = errors_of({"agents": [AGENT], "search": {"nodes_per_tree": 2, "nodes_in_flight": 3}})
    assert "lower it" in errors["search"]["reason"]


def test_a_setting_that_could_have_no_effect_is_refused():
    for section, part in [
        ({"loss": {"importance_correction": False, "importance_veto": 0.1}}, "no effect without"),
        ({"search": {"error_traceback": True, "error_feedback": False}}, "has no effect with"),
        ({"search": {"refinement_statement": False, "error_feedback": False}}, "neither the stat"),
        ({"training": {"batch_nodes": 9, "max_batch_nodes": 8}}, "raise it"),
    ]:
        errors = errors_of({"agents": [AGENT], **section})
        assert part in errors[next(iter(section))]["reason"]


NESTED = [1]
for _ in range(3000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "value", [math.inf, math.nan, "\0", "\ud800", 2**64, NESTED, 10**5000], ids=range(7)
)
@pytest.mark.parametrize(
    "path", ["training.minutes", "agents.0.role", "problems.seed", "agents.0.model"]
)
def test_values_no_database_can_store_are_refused_briefly(path, value):
    with pytest.raises(ConfigError) as caught:
        # The later setting hides the earlier one, which is stored with the run all the same.
        load_recipe("demo", {path: value, "training": {}, "problems": {}, "agents": [AGENT]})
    (problem,) = caught.value.problems
    assert problem["path"].startswith(path)
    assert len(json.dumps(problem, allow_nan=False)) < 1000
    str(caught.value).encode()


def test_the_name_of_a_number_is_no_way_around_its_bounds():
    for path, text in [("training.minutes", "inf"), ("training.steps", str(2**31))]:
        with pytest.raises(ConfigError, match=path):
            load_recipe("demo", {path: text})


def test_a_position_is_written_in_plain_digits():
    for position in ("\u00b2", "\u0663", "9" * 5000):
        with pytest.raises(ConfigError, match="no such setting"):
            load_recipe("demo", {f"agents.{position}.model": "x"})


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[" * 5000])
def test_a_broken_record_of_a_run_is_named(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(ConfigError, match=r"config\.json.*is not JSON"):
        read_config(tmp_path / "config.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "x", "--lease-seconds", "nan"],
        ["train", "x", "--lease-seconds", "-1"],
        ["starters", "--out", "x", "--seed", "-1"],
    ],
)
def test_a_number_that_no_command_can_use_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert ": give " in capsys.readouterr().err


def test_starters_are_not_made_where_they_cannot_be_kept(capsys):
    assert main(["starters", "--out", "/dev/null/x"]) == 2
    assert "/dev/null" in capsys.readouterr().err


def test_an_override_of_endless_brackets_is_refused(tmp_path, capsys):
    assert main(["prepare", str(tmp_path), "demo", "training.steps=" + "[" * 5000]) == 2
    assert "training.steps" in capsys.readouterr().err
