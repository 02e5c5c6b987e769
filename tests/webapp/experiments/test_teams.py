"""Tests of agents added, removed and renamed by overrides, and of the experiment form's texts."""

import json

import pytest

from engine.config.errors import ConfigError
from engine.recipes import agent_keys, load_recipe
from webapp.experiments.run_settings.overrides import parse_overrides


def team(text, recipe="demo"):
    config = load_recipe(recipe, parse_overrides(text))
    return {agent.name: agent for agent in config.agents}


def test_an_agent_is_added_by_name_in_any_line_order():
    for text in (
        'agents.elm.name = "elm"\nagents.elm.model = "starter:oak"\nagents.elm.sampling.top_k = 7',
        'agents.elm.sampling.top_k = 7\nagents.elm.model = "starter:oak"\nagents.elm.name = "elm"',
    ):
        made = team(text)
        assert list(made) == ["oak", "fern", "elm"]
        assert (made["elm"].model, made["elm"].sampling.top_k) == ("starter:oak", 7)


def test_an_agent_is_taken_away_and_another_has_its_name():
    made = team('agents.oak = unset\nagents.fern.name = "oak"\nagents.fern.role = "Be brief."')
    assert {name: (one.model, one.role) for name, one in made.items()} == {
        "oak": ("starter:fern", "Be brief.")
    }


@pytest.mark.parametrize("count", range(1, 9))
def test_a_team_has_from_one_to_eight_agents(count):
    names = [f"agent-{index}" for index in range(count)]
    text = "\n".join(
        f'agents.{name}.name = "{name}"\nagents.{name}.model = "starter:oak"' for name in names
    )
    overrides = parse_overrides(f"agents.oak = unset\nagents.fern = unset\n{text}")
    assert [one.name for one in load_recipe("demo", overrides).agents] == names
    assert agent_keys(["oak", "fern"], overrides) == names


@pytest.mark.parametrize(
    "text, path, reason",
    [
        ("agents.elm.model = x", "agents.elm.model", "no such setting"),
        ("agents.elm = unset", "agents.elm", "there are oak, fern"),
        ("agents.oak = unset\nagents.fern = unset", "agents", "at least 1"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused_by_its_path(text, path, reason):
    with pytest.raises(ConfigError) as refused:
        team(text)
    (problem,) = refused.value.problems
    assert problem["path"] == path and reason in problem["reason"]


@pytest.mark.django_db
def test_the_form_says_which_agent_and_which_field(client, cast):
    client.force_login(cast.bob)

    def check(text):
        requested = {"project": cast.project.pk, "recipe": "demo", "overrides": text}
        return client.post("/runs/new/check/", requested).json()

    new = 'agents.oak = unset\nagents.elm.name = "elm"'
    result = check(f"{new}\nagents.elm.sampling.temperature = -1")
    assert result["agents"] == ["fern", "elm"]
    assert {one["path"] for one in result["problems"]} == {
        "agents.elm.model", "agents.elm.sampling.temperature",
    }  # fmt: skip
    result = check(f'{new}\nagents.elm.model = "starter:fern"\nagents.elm.sampling.top_k = 9')
    assert result["problems"] == [] and result["changes"] == {
        "agents.elm.model": "starter:fern", "agents.elm.sampling.top_k": "9",
    }  # fmt: skip
    assert check(result["lines"])["toml"] == result["toml"] and 'name = "elm"' in result["toml"]
    result = check('agents.elm.name = "oak"\nagents.elm.model = "starter:oak"')
    assert "names must differ" in json.dumps(result["problems"])
