"""Tests of which files of a folder are a model's, and of complete sets of them."""

import pytest

from webapp.model_names import REQUIRED, fault_of_name, fault_of_names, part_of_folder

INDEX = "model.safetensors.index.json"


def shards(count, digits=5, of=None):
    numbers = range(1, count + 1)
    return [f"model-{n:0{digits}}-of-{count:0{of or digits}}.safetensors" for n in numbers]


@pytest.mark.parametrize("count, digits, of", [(1, 5, 5), (2, 6, 6), (30, 6, 6), (2, 5, 6)])
def test_shards_of_five_and_six_digits_are_one_model(count, digits, of):
    names = [*REQUIRED, INDEX, *shards(count, digits, of)]
    assert fault_of_names(names) is None
    assert all(fault_of_name(name) is None for name in names)


@pytest.mark.parametrize(
    "names, fault",
    [
        (shards(3, 6)[:2], "model-000003-of-000003.safetensors: is missing"),
        (shards(3, 5, 6)[1:], "model-00001-of-000003.safetensors: is missing"),
        ([*shards(2), "model-000002-of-00002.safetensors"], "model-00002-of-00002.safetensors: d"),
        ([*shards(2), "model-00001-of-00003.safetensors"], "model-00001-of-00003.safetensors: d"),
        (["model-00000-of-00002.safetensors", *shards(2)], "model-00000-of-00002.safetensors: d"),
        ([], "model.safetensors: is missing"),
        (["model.safetensors", *shards(1)], "is given alongside weights in several files"),
        (["model-0001-of-0002.safetensors"], "is no file of a model"),
        (["model-0000001-of-0000002.safetensors"], "is no file of a model"),
    ],
)  # fmt: skip
def test_shards_that_are_not_one_model_are_named(names, fault):
    assert fault in str(fault_of_names([*REQUIRED, INDEX, *names]))


def test_what_is_no_part_of_a_model_is_left_out_with_its_reason():
    clone = [".gitattributes", "SHA256SUMS", "modeling_oak.py", "pytorch_model.bin", "oak.gguf"]
    model = [*REQUIRED, "README.md", "model.safetensors"]
    taken, left_out = part_of_folder([*clone, *model])
    assert taken == model and list(left_out) == clone
    assert "safetensors only" in left_out["pytorch_model.bin"]
    assert "never run" in left_out["modeling_oak.py"]
    assert fault_of_names(taken) is None


def test_other_weights_alone_are_refused_and_an_adapter_says_what_to_do():
    taken, left_out = part_of_folder([*REQUIRED, "pytorch_model.bin", "notes.txt"])
    assert left_out.keys() == {"notes.txt"}
    assert str(fault_of_names(taken)).startswith("pytorch_model.bin: weights are accepted as")
    adapter = ["adapter_config.json", "adapter_model.safetensors", "README.md", "tokenizer.json"]
    for names in (adapter, part_of_folder(adapter)[0]):
        fault = str(fault_of_names(names))
        assert fault.startswith("adapter_config.json: is an adapter (PEFT)") and "merge" in fault


@pytest.mark.parametrize("weights", ["adapter_model.safetensors", "adapter_model.bin"])
def test_an_adapter_with_files_of_its_base_is_refused(weights):
    settings_of_base = [*REQUIRED, "adapter_config.json", weights]
    for names in (settings_of_base, part_of_folder(settings_of_base)[0]):
        assert "is no model without its base" in str(fault_of_names(names))
    with_base = [*settings_of_base, "model.safetensors"]
    for names in (with_base, part_of_folder(with_base)[0]):
        fault = str(fault_of_names(names))
        assert fault.startswith(f"{weights}: is an adapter (PEFT) alongside a whole model")


def test_the_settings_of_a_merged_adapter_are_left_out():
    taken, left_out = part_of_folder([*REQUIRED, "adapter_config.json", "model.safetensors"])
    assert left_out.keys() == {"adapter_config.json"} and fault_of_names(taken) is None
