"""Tests of agents that share weights: unset fields are the partner's, invalid ones are refused."""

import pytest

from engine.config.errors import ConfigError
from engine.config.schema import RunConfig, parse_config
from engine.config.weight_sharing import actor_groups, weight_groups
from engine.recipes import load_recipe

OWNER = {
    "name": "solver",
    "model": "starter:oak",
    "sampling": {"top_p": 0.9, "max_new_tokens": 99},
    "optimizer": {"learning_rate": 0.5},
}
ROLE = {"name": "critic", "shares_weights_with": "solver", "role": "Criticise."}


def errors_of(*agents):
    with pytest.raises(ConfigError) as caught:
        parse_config({"agents": list(agents)})
    return {problem["path"]: problem["reason"] for problem in caught.value.problems}


def test_an_agent_inherits_omitted_fields_from_its_partner_in_any_order():
    own = ROLE | {"sampling": {"temperature": 0.7}}
    config = parse_config({"agents": [own, OWNER]})
    critic, solver = config.agents
    assert critic.model == solver.model and critic.optimizer == solver.optimizer
    assert critic.sampling == solver.sampling.model_copy(update={"temperature": 0.7})
    assert (critic.role, solver.role) == ("Criticise.", "")
    assert parse_config(config.model_dump(mode="json")) == config
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_an_override_of_the_owner_is_one_of_all():
    config = load_recipe("mars2-homogeneous", {"agents.solver.model": "/models/q"})
    assert {agent.model for agent in config.agents} == {"/models/q"}
    assert len({agent.role for agent in config.agents}) == 3


@pytest.mark.parametrize(
    ("partner", "reason"),
    [
        ("birch", "no such agent; choose one of solver"),
        ("critic", "an agent has its own weights already"),
    ],
)
def test_an_invalid_partner_is_the_reported_error(partner, reason):
    errors = errors_of(OWNER, ROLE | {"shares_weights_with": partner})
    assert list(errors) == ["agents.1.shares_weights_with"]
    assert reason in errors["agents.1.shares_weights_with"]


def test_a_chain_and_a_circle_are_refused():
    third = {"name": "third", "shares_weights_with": "critic"}
    assert (
        "name solver, which owns them"
        in errors_of(OWNER, ROLE, third)["agents.2.shares_weights_with"]
    )
    circle = [ROLE | {"shares_weights_with": "third"}, third]
    assert set(errors_of(OWNER, *circle)) == {
        "agents.1.shares_weights_with",
        "agents.2.shares_weights_with",
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "starter:fern"),
        ("trainable", False),
        ("lora", {"rank": 2}),
        ("chat_template", "other.jinja"),
        ("optimizer", {"learning_rate": 0.1}),
    ],
)
def test_agents_of_one_model_cannot_differ_in_fields_of_its_weights(field, value):
    errors = errors_of(OWNER, ROLE | {field: value})
    assert list(errors) == [f"agents.1.{field}"]
    assert "belongs to the weights, which are solver's" in errors[f"agents.1.{field}"]


@pytest.mark.parametrize("partner", [3, ["solver"], {"name": "solver"}, "Not A Name"])
def test_a_partner_that_is_no_name_is_refused_by_its_path(partner):
    assert "agents.1.shares_weights_with" in errors_of(
        OWNER, ROLE | {"shares_weights_with": partner}
    )


@pytest.mark.parametrize("agents", [None, "solver", {"solver": OWNER}, [None], [OWNER, 3]])
def test_agents_that_are_none_are_refused_by_their_path(agents):
    with pytest.raises(ConfigError, match="agents"):
        parse_config({"agents": agents})


def test_a_frozen_agent_takes_no_adapter_and_all_linear_excludes_other_targets():
    frozen = OWNER | {"name": "frozen", "trainable": False, "lora": {}}
    assert "nothing to adapt" in errors_of(OWNER, frozen)["agents.1.lora"]
    both = OWNER | {"lora": {"target_modules": ["all-linear", "q_proj"]}}
    assert "list only it" in errors_of(both)["agents.0.lora"]


def test_one_actor_holds_shared_weights_and_one_holds_a_base_and_its_adapters():
    def agent(name, **settings):
        return {"name": name, "model": "starter:oak", **settings}

    config = parse_config(
        {
            "agents": [
                agent("thin", lora={}),
                agent("full"),
                agent("frozen", trainable=False),
                agent("slim", lora={"rank": 4}),
                agent("other", lora={}, model="starter:fern"),
                {"name": "role", "shares_weights_with": "thin"},
                agent("alone", trainable=False, model="/models/elsewhere"),
            ]
        }
    )
    together = [["thin", "frozen", "slim"], ["full"], ["other"], ["alone"]]
    assert actor_groups(config.agents) == together
    names = {o: [a.name for a in group] for o, group in weight_groups(config.agents).items()}
    assert names["thin"] == ["thin", "role"] and names["slim"] == ["slim"]
