"""Tests of the settings that a run's machine completes before the run's first engine."""

import json

import pytest

from engine.events.vocabulary import RunState
from engine.recipes import load_recipe
from engine.resources.small_machine import LEARNING_RATE, SmallMachine, small_machine
from tests.helpers.builders import A_PROBLEM, a_run
from webapp.experiments.launch.creation import clone_run, create_experiment_with_run
from webapp.experiments.models import Run
from webapp.experiments.run_settings.machine import complete
from webapp.searches.services import SearchSpec, create_search
from workers.runs.run_files import prepare_directory

LAPTOP = SmallMachine(cores=4, bfloat16=True, adapters=True)
LARGER = SmallMachine(cores=16, bfloat16=False, adapters=False)
PRETRAINED = {"agents.oak.model": "local:small", "agents.fern.model": "local:small"}
SHAPE = {
    "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "vocab_size": 49_152, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture
def models(settings, tmp_path):
    """The operator's directory, with the settings of a model of 0.1 billion parameters."""
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "config.json").write_text(json.dumps(SHAPE))
    settings.MODELS_DIRS = [tmp_path]
    return tmp_path


def launched(cast, changes):
    return create_experiment_with_run(cast.project, cast.alice, "demo", changes, "")


def completed(run, machine=LAPTOP):
    complete(run, machine)
    return Run.objects.get(pk=run.pk).config


def test_a_pretrained_model_of_the_browser_learns_as_on_the_command_line(cast, models):
    run = launched(cast, PRETRAINED)
    assert run.config["agents"][0]["lora"] is None
    config = completed(run)
    for agent in config["agents"]:
        assert (agent["lora"]["rank"], agent["lora"]["alpha"]) == (16, 32)
        assert agent["generator"]["weights"] == "auto"
        assert agent["optimizer"]["learning_rate"] == 1e-3  # the recipe states it
        assert agent["model"] == str(models / "small")
    compute = config["compute"]
    assert (compute["dtype"], compute["threads_per_agent"]) == ("bfloat16", 4)


def test_what_the_request_states_is_kept(cast, models):
    stated = {"agents.oak.lora": None, "compute.dtype": "float32", "compute.threads_per_agent": 3}
    config = completed(launched(cast, {**PRETRAINED, **stated}))
    oak, fern = config["agents"]
    assert oak["lora"] is None
    assert fern["lora"] is not None
    compute = config["compute"]
    assert (compute["dtype"], compute["threads_per_agent"]) == ("float32", 3)


def test_starters_and_machines_with_gpus_get_nothing(cast, models):
    for run, machine in (launched(cast, {}), LAPTOP), (launched(cast, PRETRAINED), None):
        before = run.config
        assert completed(run, machine) == before


def test_a_later_engine_of_the_run_reads_the_settings_of_the_first(cast, models):
    first = completed(run := launched(cast, PRETRAINED))
    assert completed(Run.objects.get(pk=run.pk), LARGER) == first


def test_a_clone_states_all_settings(cast, models):
    source = launched(cast, {**PRETRAINED, "agents.oak.lora": None})
    completed(source)
    clone = clone_run(source, cast.alice)
    assert completed(clone, LARGER) == Run.objects.get(pk=source.pk).config


def test_a_clone_of_a_run_that_waits_is_completed_as_the_run(cast, models):
    source = launched(cast, {**PRETRAINED, "agents.oak.lora": None})
    clone = clone_run(source, cast.alice)
    assert completed(clone) == completed(source)
    assert [agent["lora"] is None for agent in clone.config["agents"]] == [True, False]


def test_an_external_engine_is_never_completed(cast):
    config = load_recipe("smollm2").model_dump(mode="json")
    run = a_run(cast, RunState.RUNNING, config=config, outside=True)
    assert completed(run) == config


def test_a_search_of_a_pretrained_model_decodes_in_small_weights(cast, models):
    changes = {"agents": [{"name": "one", "model": "local:small"}]}
    search = create_search(
        cast.project, cast.alice, SearchSpec(["starter:oak"], A_PROBLEM, overrides=changes)
    )
    (agent,) = completed(search.run)["agents"]
    assert agent["generator"]["weights"] == "auto"
    assert agent["lora"] is None  # nothing learns
    assert agent["optimizer"]["learning_rate"] != LEARNING_RATE


def test_the_worker_gives_the_engine_what_it_stored(cast, models, tmp_path):
    run = launched(cast, PRETRAINED)
    prepare_directory(run, tmp_path / "run", lambda step: step())
    stored = Run.objects.get(pk=run.pk)
    assert stored.given is None
    written = json.loads((tmp_path / "run" / "config.json").read_text())
    assert written == stored.config
    expected = "auto" if small_machine() else "model"
    assert {agent["generator"]["weights"] for agent in written["agents"]} == {expected}
