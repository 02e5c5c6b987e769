"""Tests of the settings that an architecture's metadata and tensors determine, and of refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.policy.models.gguf.convert import convert
from engine.policy.models.load import ModelError, load_policy
from tests.engine.policy.gguf.tiny import ARCHITECTURES, content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level, pieces

IDS = torch.arange(3, 30)[None]


def tiny(architecture="llama", kind="F32", **options):
    """Returns a model and its file's content."""
    vocabulary = byte_level(size=300)
    size = len(vocabulary["tokenizer.ggml.tokens"])
    if architecture != "gemma3":
        options.setdefault("num_hidden_layers", 1)
    model = tiny_model(architecture, size, **options)
    return model, content_of(model, architecture, kind, vocabulary)


def imported(content, tmp_path):
    convert(content.write(tmp_path / "tiny.gguf"), tmp_path / "imported")
    return load_policy(str(tmp_path / "imported")).model


def assert_same(model, other):
    with torch.no_grad():
        torch.testing.assert_close(other(IDS).logits, model(IDS).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("tied", [False, True])
def test_the_output_layer_is_the_embedding_where_the_file_has_none(architecture, tied, tmp_path):
    model, content = tiny(architecture, tie_word_embeddings=tied)
    assert ("output.weight" in content.tensors) is not tied
    other = imported(content, tmp_path)
    assert other.config.tie_word_embeddings is tied
    assert_same(model, other)


@pytest.mark.parametrize("options", [{"attention_bias": True}, {"mlp_bias": True}])
def test_llama_has_biases_where_the_file_has_them(options, tmp_path):
    model, content = tiny("llama", "F16", **options)
    assert any(name.endswith(".bias") for name in content.tensors)
    assert_same(model, imported(content, tmp_path))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_positions_are_scaled_linearly_where_the_file_says_so(architecture, tmp_path):
    rope = {"rope_type": "linear", "factor": 4.0, "rope_theta": 50_000.0}
    model, content = tiny(architecture, rope_parameters=rope)
    assert_same(model, imported(content, tmp_path))
    with pytest.raises(AssertionError):
        content.values[f"{architecture}.rope.scaling.type"] = "none"
        (tmp_path / "other").mkdir()
        assert_same(model, imported(content, tmp_path / "other"))


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_divisors_of_llama_3_become_its_four_numbers(factor, tmp_path):
    rope = {
        "rope_type": "llama3", "rope_theta": 500_000.0, "factor": factor, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
    }  # fmt: skip
    model, content = tiny(rope_parameters=rope)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](model.config, torch.device("cpu"))
    plain = 500_000.0 ** (-np.arange(0, 64, 2) / 64)
    divisors = (plain / scaled.numpy()).astype(np.float32)
    content.tensors["rope_freqs.weight"] = (divisors, Kind.F32)
    other = imported(content, tmp_path)
    assert other.config.rope_parameters == rope
    assert_same(model, other)
    content.tensors["rope_freqs.weight"] = (divisors * np.float32(1.5), Kind.F32)
    with pytest.raises(ModelError, match=r"tensor rope_freqs\.weight: holds no divisors of Llama"):
        convert(content.write(tmp_path / "other.gguf"), tmp_path / "other")


def gemma_config(tmp_path, **changes):
    _, content = tiny("gemma3")
    content.values |= {f"gemma3.{key}": value for key, value in changes.items()}
    imported(content, tmp_path)
    return json.loads((tmp_path / "imported/config.json").read_text())


def test_gemma_has_windows_and_bases_of_its_runtime(tmp_path):
    config = gemma_config(tmp_path)
    assert config["layer_types"] == [
        *["sliding_attention"] * 5,
        "full_attention",
        "sliding_attention",
    ]
    assert config["sliding_window"] == 4
    assert config["rope_parameters"]["sliding_attention"]["rope_theta"] == 10_000
    assert config["rope_parameters"]["full_attention"] == {
        "rope_type": "linear", "factor": 8.0, "rope_theta": 1e6
    }  # fmt: skip
    assert config["query_pre_attn_scalar"] == 64
    assert config["dtype"] == "float32"


@pytest.mark.parametrize(
    ("changes", "full"),
    [
        ({"attention.sliding_window_pattern": 3}, [2, 5]),
        (
            {"attention.sliding_window_pattern": [True, False, True, True, False, True, True]},
            [1, 4],
        ),
        ({"attention.sliding_window": 0}, list(range(7))),
    ],
)
def test_gemma_has_the_windows_that_the_file_states(changes, full, tmp_path):
    kinds = gemma_config(tmp_path, **changes)["layer_types"]
    assert [layer for layer, kind in enumerate(kinds) if kind == "full_attention"] == full


def test_gemma_in_f16_is_loaded_as_bf16_where_no_dtype_is_named(tmp_path):
    _, content = tiny("gemma3", "Q8_0")
    imported(content, tmp_path)
    assert json.loads((tmp_path / "imported/config.json").read_text())["dtype"] == "bfloat16"


def test_the_largest_gemma_scales_scores_by_its_width(tmp_path):
    _, content = tiny("gemma3", num_hidden_layers=62, hidden_size=64, num_attention_heads=4,
                      num_key_value_heads=2, head_dim=8, intermediate_size=32)  # fmt: skip
    imported(content, tmp_path)
    config = json.loads((tmp_path / "imported/config.json").read_text())
    assert config["query_pre_attn_scalar"] == 16


def change(content, key, value):
    if value is None:
        del content.values[key]
    else:
        content.values[key] = value


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("general.architecture", "mamba", "'mamba' is not supported; supported are gemma3, llama"),
        ("split.count", (3, "UINT16"), "split.count: the model is split into 3 files"),
        ("llama.block_count", None, "llama.block_count: is missing"),
        ("llama.block_count", 2, r"tensor blk\.1\.attn_norm\.weight: is missing"),
        ("llama.block_count", 2**31, "llama.block_count: 2147483648 is no whole number"),
        ("llama.block_count", (-1, "INT32"), "llama.block_count: -1 is no whole number"),
        ("llama.block_count", True, "llama.block_count: True is no whole number"),
        ("llama.block_count", "1", "llama.block_count: '1' is no whole number"),
        ("llama.block_count", [1], r"llama.block_count: array\(\[1\].* is no whole number"),
        ("llama.attention.head_count", 0, "llama.attention.head_count: 0 is no whole number"),
        ("llama.attention.head_count", 3, "head_count_kv: 2 does not divide the 3 heads"),
        ("llama.attention.head_count", 6, "head_count: 6 does not divide embedding_length = 256"),
        ("llama.attention.head_count_kv", 3, "head_count_kv: 3 does not divide the 4 heads"),
        ("llama.attention.key_length", 63, "key_length: 63 numbers of a head cannot be rotated"),
        ("llama.attention.value_length", 32, "value_length: 32 differs from the 64 numbers"),
        ("llama.rope.dimension_count", 32, "rope.dimension_count: 32 differs from the 64"),
        ("llama.rope.freq_base", float("nan"), "rope.freq_base: nan is no number above 0"),
        ("llama.rope.freq_base", 0.0, "rope.freq_base: 0.0 is no number above 0"),
        ("llama.rope.scaling.type", "yarn", "rope.scaling.type: 'yarn' is not supported"),
        ("llama.attention.layer_norm_rms_epsilon", None, "layer_norm_rms_epsilon: is missing"),
        ("llama.attention.sliding_window", 16, "sliding_window: 16 is shorter than the context"),
        ("llama.attention.causal", False, "attention.causal: attention to later tokens"),
        ("llama.expert_count", 8, "llama.expert_count: a mixture of experts is not supported"),
        ("llama.logit_scale", 0.5, "llama.logit_scale: is not supported"),
        ("llama.vocab_size", 301, "llama.vocab_size: 301, but tokenizer.ggml.tokens has 300"),
        ("llama.embedding_length", 128, r"tensor token_embd\.weight: is of shape \(300, 256\), by"),
        ("tokenizer.chat_template", "x" * 262_145, "tokenizer.chat_template: has 262,145 characte"),
        ("tokenizer.chat_template", "{{ 'a' * 3160000000 }}", r"chat_template: `\*` makes 3,160,0"),
    ],
)  # fmt: skip
def test_metadata_that_make_no_model_are_refused_by_name(key, value, reason, tmp_path):
    _, content = tiny()
    change(content, key, value)
    if key == "general.architecture":
        content.architecture = content.values.pop(key)
    with pytest.raises(ModelError, match=reason):
        imported(content, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["tiny.gguf"]


def test_tensors_that_make_no_model_are_refused_by_name(tmp_path):
    _, content = tiny()
    sound = dict(content.tensors)
    wide = np.zeros((256, 512), np.float32)
    for name, change, reason in (
        ("blk.0.ffn_up.weight", None, "is missing"),
        ("blk.0.ffn_up.weight", (wide, Kind.F32), r"is of shape \(256, 512\), by the metadata"),
        ("blk.0.ffn_gate_inp.weight", (wide, Kind.F32), "is no tensor of this architecture"),
        ("blk.0.attn_q.bias", (wide[0], Kind.F32), "is of shape"),
        ("rope_freqs.weight", (wide[0], Kind.F32), r"is of shape \(512,\), by the metadata"),
        (
            "blk.0.ffn_up.weight",
            (np.zeros((256, 84), np.uint8), Kind.Q2_K),
            "is of type Q2_K; supp",
        ),
    ):
        content.tensors = dict(sound)
        if change is None:
            del content.tensors[name]
        else:
            content.tensors[name] = change
        with pytest.raises(ModelError, match=f"tensor '?{name}'?: {reason}"):
            imported(content, tmp_path)
        assert [one.name for one in tmp_path.iterdir()] == ["tiny.gguf"]


def test_a_vocabulary_of_another_size_than_the_embedding_is_refused(tmp_path):
    model = tiny_model("gemma3", 299)
    content = content_of(model, "gemma3", "F32", pieces())
    with pytest.raises(ModelError, match=r"token_embd\.weight: is of shape \(299, 256\), by the m"):
        imported(content, tmp_path)
