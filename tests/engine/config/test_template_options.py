"""Tests of the options of chat templates: what is accepted, and how errors name it."""

import json

import pytest

from engine.config.errors import ConfigError
from engine.config.schema import parse_config
from engine.inference.agents import team_of
from engine.recipes import load_recipe
from engine.training.compatibility import settings_with_defaults

AGENT = {"name": "oak", "model": "starter:oak"}
OPTIONS = {"enable_thinking": False, "budget": 512, "top": 0.5, "effort": "low"}


def options_of(given):
    return parse_config({"agents": [{**AGENT, "template_options": given}]})


def test_plain_values_of_any_name_are_kept_with_their_types_in_the_record():
    config = options_of(OPTIONS)
    assert config.agents[0].template_options == OPTIONS
    stored = json.loads(config.model_dump_json())
    assert parse_config(stored) == config
    kept = parse_config(stored).agents[0].template_options
    assert [type(value) for value in kept.values()] == [bool, int, float, str]


def test_one_option_can_be_set_by_its_path():
    config = load_recipe("demo", {"agents.oak.template_options.enable_thinking": False})
    assert [agent.template_options for agent in config.agents] == [{"enable_thinking": False}, {}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no table", "is no table"),
        (None, "is no table"),
        ({"enable_thinking": None}, "enable_thinking = None: give a text, a number, true or false"),
        ({"tools": []}, "tools = []: every prompt sets this by itself; leave it out"),
        ({"levels": [1]}, "levels = [1]: give a text, a number, true or false"),
        ({"nested": {"a": 1}}, "nested = {'a': 1}: give a text"),
        ({"messages": "x"}, "messages = 'x': every prompt sets this by itself; leave it out"),
        ({"bos_token": "x"}, "bos_token = 'x': every prompt sets this"),
        ({"enable thinking": True}, "enable thinking = True: name an option with letters"),
        ({"x": 2**60}, "x = 1152921504606846976: give a number from -9007199254740992 to"),
        ({"x": "y" * 1001}, "has 1,001 characters; give 1,000 at most"),
        ({f"o{n}": n for n in range(33)}, "has 33 options; give 32 at most"),
    ],
)
def test_a_wrong_option_is_refused_by_name_with_its_value_and_the_remedy(given, said):
    with pytest.raises(ConfigError) as caught:
        options_of(given)
    (problem,) = caught.value.problems
    assert problem["path"] == "agents.0.template_options" and said in problem["reason"]


def test_a_number_that_no_record_can_hold_is_refused():
    with pytest.raises(ConfigError) as caught:
        options_of({"x": float("inf")})
    assert caught.value.problems[0]["path"] == "agents.0.template_options.x"


def test_agents_that_share_weights_inherit_options_and_may_have_their_own():
    both = [
        {**AGENT, "template_options": {"enable_thinking": True, "effort": "high"}},
        {"name": "elm", "shares_weights_with": "oak", "template_options": {"effort": "low"}},
    ]
    _, elm = parse_config({"agents": both}).agents
    assert elm.template_options == {"enable_thinking": True, "effort": "low"}


def test_a_checkpoint_without_the_setting_has_no_options():
    saved = load_recipe("demo").model_dump(mode="json")
    for agent in saved["agents"]:
        del agent["template_options"]
    agents = settings_with_defaults(saved)["agents"]
    assert [agent["template_options"] for agent in agents] == [{}, {}]


def test_a_search_with_the_weights_of_a_run_keeps_the_options_of_their_agent(tmp_path):
    config = load_recipe("demo", {"agents.oak.template_options": OPTIONS})
    (tmp_path / "config.json").write_text(config.model_dump_json())
    for name in ("oak", "fern"):
        (tmp_path / "models" / name).mkdir(parents=True)
    oak, fern = team_of([str(tmp_path)])
    assert (oak["template_options"], fern["template_options"]) == (OPTIONS, {})
