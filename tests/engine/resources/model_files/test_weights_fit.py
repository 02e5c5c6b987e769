"""Tests that weights which are not those of their config.json are refused by name, without torch.

What a family's tensors are is held against the models that transformers itself builds.
"""

import json

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

from engine.resources.model_files.weights_fit import WeightsMisfit, refuse_misfit

SMALL = {"vocab_size": 60, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}  # fmt: skip
GPT2 = {"vocab_size": 60, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 30}
VARIANTS = {
    "llama": [{}, {"attention_bias": True}, {"mlp_bias": True, "tie_word_embeddings": True},
              {"head_dim": 10}],
    "mistral": [{}, {"head_dim": 10, "tie_word_embeddings": True}],
    "qwen2": [{}, {"tie_word_embeddings": True}],
    "qwen3": [{}, {"attention_bias": True, "head_dim": 10, "tie_word_embeddings": True}],
    "gemma": [{}, {"attention_bias": True, "tie_word_embeddings": False}],
    "gemma2": [{}, {"attention_bias": True, "head_dim": 10}],
    "gemma3_text": [{}, {"attention_bias": True, "head_dim": 10}],
    "granite": [{}, {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}],
    "gpt2": [{}, {"n_inner": 50}, {"tie_word_embeddings": False}],
}  # fmt: skip
KINDS = [(kind, changes) for kind, listed in VARIANTS.items() for changes in listed]


def built(kind, **changes):
    """Settings as config.json has them, the stored tensors' shapes by name, and the names of those
    that may be absent because they are tied."""
    config = CONFIG_MAPPING[kind](**((GPT2 if kind == "gpt2" else SMALL) | changes))
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    own = {name for name, _ in model.named_parameters()}
    return json.loads(config.to_json_string(use_diff=False)), shapes, shapes.keys() - own


@pytest.mark.parametrize("kind, changes", KINDS)
def test_the_weights_of_transformers_fit_and_without_any_one_of_them_they_do_not(kind, changes):
    settings, shapes, tied = built(kind, **changes)
    refuse_misfit(settings, shapes)
    refuse_misfit(settings, {name: shapes[name] for name in shapes.keys() - tied})
    for name in shapes.keys() - tied:
        rest = {other: shape for other, shape in shapes.items() if other != name}
        with pytest.raises(WeightsMisfit, match=r"lacks 1 tensor that config\.json") as refusal:
            refuse_misfit(settings, rest)
        assert f": {name}; " in str(refusal.value)
        with pytest.raises(WeightsMisfit, match="1 tensor of another shape") as refusal:
            refuse_misfit(settings, shapes | {name: [*shapes[name][:-1], 7]})
        assert f"{name} of [" in str(refusal.value)


@pytest.fixture(scope="module")
def llama():
    settings, shapes, _ = built("llama")
    return settings, shapes


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "model."])
def test_names_with_a_prefix_are_refused_with_the_prefix_and_the_first_names(llama, prefix):
    settings, shapes = llama
    with pytest.raises(WeightsMisfit, match=r"begin with .*remove the prefix") as refusal:
        refuse_misfit(settings, {f"{prefix}{name}": shape for name, shape in shapes.items()})
    assert f"'{prefix.split('.')[0]}.'" in str(refusal.value)
    assert f"{len(shapes)} tensors" in str(refusal.value)
    assert refusal.value.what.count(", ") == 4 and refusal.value.what.endswith(", ...")


def test_a_layer_less_and_a_layer_more_are_refused_with_their_tensors(llama):
    settings, shapes = llama
    with pytest.raises(WeightsMisfit, match=r"lacks 9 tensors .*model\.layers\.2\.") as refusal:
        refuse_misfit(settings | {"num_hidden_layers": 3}, shapes)
    assert "mlp.up_proj" not in str(refusal.value), "the first three are named"
    with pytest.raises(WeightsMisfit, match=r"holds 9 tensors .*model\.layers\.1\."):
        refuse_misfit(settings | {"num_hidden_layers": 1}, shapes)
    with pytest.raises(WeightsMisfit, match=r"holds 1 tensor that .*: score\.weight"):
        refuse_misfit(settings, shapes | {"score.weight": [2, 24]})


def test_buffers_of_older_files_and_the_bare_model_fit(llama):
    settings, shapes = llama
    old = {f"model.layers.{n}.self_attn.rotary_emb.inv_freq": [3] for n in range(2)}
    refuse_misfit(settings, shapes | old)
    settings, shapes, tied = built("gpt2")
    masks = {f"transformer.h.{n}.attn.{name}bias": [1] for n in (0, 1) for name in ("", "masked_")}
    refuse_misfit(settings, shapes | masks)
    bare = {n.removeprefix("transformer."): s for n, s in shapes.items() if n not in tied}
    refuse_misfit(settings, bare)


def test_of_other_families_the_layers_are_counted():
    shapes = {f"model.layers.{n}.mixer.weight": [4, 4] for n in range(12)}
    refuse_misfit({"model_type": "unheard", "num_hidden_layers": 12}, shapes)
    refuse_misfit({"text_config": {"num_hidden_layers": 12}}, shapes)
    refuse_misfit({"num_hidden_layers": 11, "num_nextn_predict_layers": 1}, shapes)
    refuse_misfit({"num_hidden_layers": 2}, {"head.weight": [4, 4]})
    with pytest.raises(WeightsMisfit, match=r"holds 12 layers, .* 3: model\.layers\.3, "):
        refuse_misfit({"num_hidden_layers": 3}, shapes)
    with pytest.raises(WeightsMisfit, match=r"lacks 2 of the 14 layers .*: model\.layers\.12, "):
        refuse_misfit({"num_hidden_layers": 14}, shapes)
    with pytest.raises(WeightsMisfit, match=r"begin with '_orig_mod\.'"):
        refuse_misfit({}, {f"_orig_mod.{name}": shape for name, shape in shapes.items()})


@pytest.mark.parametrize(
    "changes",
    [{"num_key_value_heads": "2"}, {"head_dim": -1}, {"num_attention_heads": True},
     {"hidden_size": None}, {"model_type": ["llama"]}],
)  # fmt: skip
def test_sizes_that_are_none_leave_the_tensors_to_the_loader(llama, changes):
    settings, shapes = llama
    refuse_misfit(settings | changes, shapes | {"score.weight": [1]})


@pytest.mark.large
@pytest.mark.parametrize("kind", sorted(CAUSAL))
def test_no_model_of_transformers_is_refused(kind):
    """With few layers, where the config knows how many it has."""
    config_of = CONFIG_MAPPING[kind]
    try:
        config = config_of(num_hidden_layers=2)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except Exception as error:
        pytest.skip(f"is built of other settings: {error}"[:200])
    settings = json.loads(config.to_json_string(use_diff=False))
    refuse_misfit(settings, {name: list(one.shape) for name, one in model.state_dict().items()})
