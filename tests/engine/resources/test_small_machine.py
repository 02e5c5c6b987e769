"""Tests of the settings that pretrained models get on a machine without a GPU."""

import copy
import json

import pytest
import torch

from engine.__main__ import main
from engine.config.errors import ConfigError
from engine.config.schema import parse_config, read_config
from engine.inference.agents import inference_config
from engine.policy.generators import replica
from engine.recipes import load_recipe, recipe_data, recipe_names
from engine.resources.small_machine import (
    LEARNING_RATE,
    SmallMachine,
    lines_of,
    multiplies_bfloat16,
    with_defaults,
)

LAPTOP = SmallMachine(cores=4, bfloat16=True, adapters=True)
OLD = SmallMachine(cores=4, bfloat16=False, adapters=False)
SIZES = {"small": 576, "starter": 64, "large": 4096}
"""Hidden size of models of 0.1 billion, 4 million and 3 billion parameters."""


@pytest.fixture
def models(tmp_path):
    """Directories of models of which only the settings exist."""
    for name, hidden in SIZES.items():
        folder = tmp_path / name
        folder.mkdir()
        settings = {
            "hidden_size": hidden, "intermediate_size": 3 * hidden, "num_hidden_layers": 20,
            "num_attention_heads": 8, "vocab_size": 49_152, "tie_word_embeddings": True,
        }  # fmt: skip
        (folder / "config.json").write_text(json.dumps(settings))
    return {name: str(tmp_path / name) for name in SIZES}


def team(*models, **more):
    agents = [{"name": f"agent-{n}", "model": model} for n, model in enumerate(models)]
    return {"agents": agents, **copy.deepcopy(more)}


def test_a_pretrained_model_learns_by_adapters_on_all_cores(models):
    data = team(models["small"], models["small"])
    given = copy.deepcopy(data)
    config, added = with_defaults(data, LAPTOP)
    assert data == given
    for agent in config.agents:
        assert (agent.lora.rank, agent.lora.alpha) == (16, 32)
        assert agent.generator.weights == "auto"
        assert agent.optimizer.learning_rate == LEARNING_RATE
    # Both are in one actor, which has all cores.
    assert (config.compute.threads_per_agent, config.compute.dtype) == (4, "bfloat16")
    assert "  agents.agent-0.lora={}" in lines_of(added)


def test_frozen_agents_and_those_of_another_base_have_actors_of_their_own(models):
    data = team(models["small"], "starter:oak", compute={"dtype": "float32"})
    config, _ = with_defaults(data, LAPTOP)
    assert config.compute.threads_per_agent == 2 and config.compute.dtype == "float32"
    assert config.agents[1] == parse_config(team("starter:oak", "starter:oak")).agents[1]
    config, _ = with_defaults(team(models["small"]), LAPTOP, learns=False)
    assert config.agents[0].lora is None and config.agents[0].generator.weights == "auto"
    data = team(models["small"], "starter:oak")
    data["agents"][0]["trainable"] = False
    assert with_defaults(data, LAPTOP)[0].agents[0].lora is None


def test_what_is_stated_is_not_changed(models):
    stated = {
        "generator": {"weights": "model"}, "lora": None, "optimizer": {"learning_rate": 1e-5},
    }  # fmt: skip
    data = team(models["small"], models["small"], compute={"threads_per_agent": 3})
    data["agents"][0] |= stated
    data["agents"][1] |= {"lora": {"rank": 4}, "optimizer": {"learning_rate": 1e-5}}
    config, added = with_defaults(data, LAPTOP)
    first, second = config.agents
    assert first.lora is None and first.generator.weights == "model"
    assert second.lora.rank == 4 and second.optimizer.learning_rate == 1e-5
    assert config.compute.threads_per_agent == 3
    assert set(added) == {"agents.agent-1.generator.weights", "compute.dtype"}


def test_partners_inherit_what_their_owner_gets(models):
    data = team(models["small"])
    data["agents"].append({"name": "agent-1", "shares_weights_with": "agent-0"})
    config, added = with_defaults(data, LAPTOP)
    assert config.agents[1].lora == config.agents[0].lora is not None
    assert not [path for path in added if path.startswith("agents.agent-1")]


def test_without_bfloat16_and_peft_all_weights_learn_in_float32(models):
    config, added = with_defaults(team(models["small"]), OLD)
    assert config.compute.dtype == "float32" and config.agents[0].lora is None
    assert set(added) == {"agents.agent-0.generator.weights", "compute.threads_per_agent"}


@pytest.mark.parametrize("name", ["starter", "large"])
@pytest.mark.parametrize("more", [{}, {"compute": {"device": "cuda"}}])
def test_starters_large_models_and_gpus_are_left_alone(models, name, more):
    data = team("starter:fern" if name == "starter" else models[name], **more)
    assert with_defaults(data, LAPTOP) == (parse_config(data), {})
    small = team(models["small"], **more)
    assert with_defaults(small, None) == (parse_config(small), {})
    if more:
        assert with_defaults(small, LAPTOP)[1] == {}


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_are_the_same_on_every_machine(name, monkeypatch, tmp_path):
    monkeypatch.setenv("GROVE_MODELS_DIR", str(tmp_path))  # smollm2 is not installed
    assert with_defaults(recipe_data(name), LAPTOP) == (load_recipe(name), {})


def test_prepare_reports_what_it_added(models, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")  # no driver of a GPU
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    run = tmp_path / "run"
    paths = [f"agents.{n}.model={models['small']}" for n in (0, 1)]
    assert main(["prepare", str(run), "mars2", *paths]) == 0
    config = read_config(run / "config.json")
    assert all(agent.generator.weights == "auto" for agent in config.agents)
    errors = capsys.readouterr().err
    assert errors.startswith("no GPU here: ") and "agents.first.generator.weights=auto" in errors
    assert main(["prepare", str(run), "demo"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: training.minibatches = 1: "), "nothing was added"
    assert read_config(run / "config.json") == load_recipe("demo")


def test_wrong_settings_are_refused_as_before():
    with pytest.raises(ConfigError, match="steps"):
        with_defaults(recipe_data("demo", {"training.steps": -1}), LAPTOP)


def test_a_search_with_starters_has_the_settings_of_before():
    config = inference_config(["starter:oak"], {})
    assert config.compute == load_recipe("demo").compute.model_copy(
        update={"lanes": config.compute.lanes, "threads_per_agent": 1}
    )
    assert config.agents[0].generator.weights == "model"


def test_the_processors_features_are_those_that_torch_sees(tmp_path):
    assert multiplies_bfloat16() == replica.multiplies_bfloat16()
    info = tmp_path / "cpuinfo"
    assert not multiplies_bfloat16(info)
    for text, multiplies in (
        ("flags\t\t: fpu avx512_bf16 sse\n", True),
        ("Features\t: fp asimd bf16\n", True),
        ("flags\t\t: fpu avx2\nbugs\t\t: bf16\n", False),
    ):
        info.write_text(text)
        assert multiplies_bfloat16(info) is multiplies
    assert torch.cpu.get_capabilities()
