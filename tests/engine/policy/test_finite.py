"""Tests that weights which hold NaN or an infinity, or a head that differs from the embedding it is
tied to, are refused by tensor and file, however the weights are read."""

import json
import math
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.policy.models.adapters import with_adapter
from engine.policy.models.finite import is_finite
from engine.policy.models.load import ADAPTER_WEIGHTS, ModelError, load_policy
from engine.policy.models.shard_loading import empty_model, fill, tensor_files
from tests.helpers.policies import tiny_policy

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
DOWN = "model.layers.1.mlp.down_proj.weight"
NORM = "model.norm.weight"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "sound")


@pytest.fixture
def model(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "model")


def save(model, tensors, shards=1):
    """Writes tensors as one file, or as so many with their index."""
    (model / "model.safetensors").unlink(missing_ok=True)
    if shards == 1:
        save_file(tensors, model / "model.safetensors")
        return
    index = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(tensors.items())[number::shards])
        index |= dict.fromkeys(part, file)
        save_file(part, model / file)
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def weights_of(model):
    return load_file(model / "model.safetensors")


def planted(tensors, name, number, place, dtype=torch.float32):
    changed = {key: tensor.to(dtype) for key, tensor in tensors.items()}
    changed[name] = changed[name].clone()
    changed[name][place] = number
    return changed


def fill_whole(model):
    directory = model
    files = tensor_files(directory)
    assert files is not None
    fill(empty_model(directory, torch.float32), files, "cpu")


WAYS = {"whole": lambda model: load_policy(str(model)), "by parts": fill_whole}
FAULTS = {
    "NaN": (DOWN, math.nan, (3, 5), "NaN at [3, 5]; save"),
    "an infinity": (EMBEDDING, math.inf, (7, 0), "an infinity at [7, 0]; save"),
    "a negative infinity": (NORM, -math.inf, (31,), "an infinity at [31]; save"),
    "a row": (DOWN, math.nan, (2,), "NaN at [2, 0], and 63 more that are no finite numbers; save"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", FAULTS)
def test_weights_that_are_not_finite_are_refused_by_tensor_and_file(model, what, way):
    name, number, place, message = FAULTS[what]
    save(model, planted(weights_of(model), name, number, place), shards=2)
    file = json.loads((model / "model.safetensors.index.json").read_text())["weight_map"][name]
    with pytest.raises(ModelError) as refusal:
        WAYS[way](model)
    assert str(refusal.value).startswith(f"{model / file}: tensor '{name}' holds {message} the")


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "float8_e4m3fn"])
def test_they_are_found_in_floats_of_every_width(model, dtype):
    kind = getattr(torch, dtype)
    save(model, planted(weights_of(model), DOWN, math.nan, (1, 1), kind))
    with pytest.raises(ModelError, match=rf"tensor '{DOWN}' holds NaN at \[1, 1\]"):
        load_policy(str(model))


@pytest.mark.parametrize("way", WAYS)
def test_a_number_beyond_the_dtype_in_which_the_model_runs_is_named(model, way):
    save(model, planted(weights_of(model), NORM, 1e300, (2,), torch.float64))
    with pytest.raises(ModelError, match=rf"'{NORM}' holds numbers beyond float32; save the model"):
        WAYS[way](model)


def test_the_largest_numbers_and_no_numbers_are_finite():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        extremes = torch.tensor([torch.finfo(dtype).max, torch.finfo(dtype).min], dtype=dtype)
        assert is_finite(extremes) and is_finite(torch.empty(0, 3, dtype=dtype))
        assert not is_finite(torch.cat([extremes, torch.tensor([math.nan], dtype=dtype)]))


def test_an_adapter_that_is_not_finite_is_refused(model, tmp_path):
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    weights = {name.format("A"): torch.zeros(2, 32), name.format("B"): torch.zeros(32, 2)}
    weights[name.format("B")][4, 1] = math.nan
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    save_file(weights, adapter / ADAPTER_WEIGHTS)
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(model), "r": 2,
                "lora_alpha": 4, "target_modules": ["q_proj"], "layers_to_transform": [0],
                "task_type": "CAUSAL_LM"}  # fmt: skip
    (adapter / "adapter_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=rf"{ADAPTER_WEIGHTS}: tensor '.*lora_B.*' .* \[4, 1\]"):
        with_adapter(load_policy(str(model)).model, adapter)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_ranks_compare_a_tied_output_with_the_embedding(model, shards):
    tensors = weights_of(model)
    for more in (0.0, 1.0):
        output = tensors[EMBEDDING].clone()
        output[-1, -1] += more
        save(model, tensors | {HEAD: output}, shards)
        if not more:
            files = tensor_files(model)
            built = empty_model(model, torch.float32)
            fill(built, files, "cpu")
            assert torch.equal(built.lm_head.weight, output)
    with pytest.raises(ModelError, match=r"differs from its embedding, .*tie_word_embeddings to"):
        tensor_files(model)
    config = json.loads((model / "config.json").read_text()) | {"tie_word_embeddings": False}
    (model / "config.json").write_text(json.dumps(config))
    built = empty_model(model, torch.float32)
    fill(built, tensor_files(model), "cpu")
    assert torch.equal(built.lm_head.weight, output)
