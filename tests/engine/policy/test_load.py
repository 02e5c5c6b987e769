"""Tests that a model directory that does not load raises an error with the file at fault."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.policy.models.load import ModelError, check_model_directory, load_policy
from engine.policy.models.shard_loading import empty_model, fill, tensor_files
from tests.helpers.policies import tiny_policy


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "sound")


@pytest.fixture
def model(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "model")


def test_a_sound_directory_loads(model):
    policy = load_policy(str(model))
    assert policy.end_ids == (policy.tokenizer.eos_token_id,)
    assert policy.pad_id == policy.tokenizer.pad_token_id


@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"]
)
def test_a_missing_file_is_named(model, file):
    (model / file).unlink()
    with pytest.raises(ModelError, match=file):
        check_model_directory(str(model))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_damaged_file_is_named(model, file):
    (model / file).write_bytes(b"\x00 not what it says")
    with pytest.raises(ModelError, match=file):
        check_model_directory(str(model))


def test_a_cut_off_weight_file_is_named(model):
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        check_model_directory(str(model))


def test_weights_that_are_not_those_of_the_config_are_refused(model):
    config = json.loads((model / "config.json").read_text())
    config["hidden_size"] = 64
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_policy(str(model))


def test_a_tokenizer_of_another_model_is_refused(model, tmp_path):
    other = tiny_policy(tmp_path / "other", vocabulary=600)
    shutil.copy(other / "tokenizer.json", model / "tokenizer.json")
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_policy(str(model))


def test_a_path_that_is_no_directory_and_an_unknown_starter_are_refused(tmp_path):
    with pytest.raises(ModelError, match="not a directory"):
        check_model_directory(str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match="oak, fern"):
        check_model_directory("starter:birch")


@pytest.mark.parametrize("files", [[], {"a": 1}, {"a": None, "b": "x"}, {"a": "../x"}])
def test_a_list_of_weight_files_that_is_none_is_refused(model, files):
    index = model / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": files}))
    with pytest.raises(ModelError, match=r"index\.json: its weight_map"):
        check_model_directory(str(model))


def test_endless_brackets_and_the_home_of_nobody_are_refused(model):
    (model / "config.json").write_text("[" * 5000)
    with pytest.raises(ModelError, match=r"config\.json is not valid JSON"):
        check_model_directory(str(model))
    with pytest.raises(ModelError, match="home directory"):
        check_model_directory("~nobody-here/x")


def test_a_model_that_is_filled_tensor_by_tensor_is_the_one_that_is_loaded(model):
    for reference in (str(model), "starter:oak", "starter:fern"):
        directory = check_model_directory(reference)
        built = empty_model(directory, torch.float32)
        assert {weight.device.type for weight in built.parameters()} == {"meta"}
        fill(built, tensor_files(directory), "cpu")
        loaded = load_policy(reference).model
        actual, expected = (
            dict(m.named_parameters(remove_duplicate=False)) | dict(m.named_buffers())
            for m in (built, loaded)
        )
        assert actual.keys() == expected.keys()
        assert all(torch.equal(actual[name], expected[name]) for name in actual)
        assert len(list(built.parameters())) == len(list(loaded.parameters())), "tied as it was"


def test_weights_that_cannot_be_loaded_tensor_by_tensor_are_reported_beforehand(model):
    weights = load_file(model / "model.safetensors")
    first, *_ = weights
    save_file({f"old.{name}": tensor for name, tensor in weights.items()},
              model / "model.safetensors")  # fmt: skip
    assert tensor_files(model) is None
    save_file(weights | {first: weights[first][:-1].clone()}, model / "model.safetensors")
    with pytest.raises(ValueError, match=rf"{first} has shape .*config\.json"):
        fill(empty_model(model, torch.float32), tensor_files(model), "cpu")
