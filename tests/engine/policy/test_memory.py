"""Tests that recomputation in the learner changes no gradient and saves the memory."""

import copy

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from engine.config.agents import AgentConfig
from engine.config.loss import LossConfig
from engine.config.training import RowLayout, TrainingConfig
from engine.policy.learner.forward import inputs_of, output_logprobs, pack_rows, pad_rows
from engine.policy.learner.learner import Learner
from engine.policy.learner.recompute import recompute_activations
from engine.policy.learner.rows import TrainingRow
from engine.policy.learner.trie import pack, share_prefixes
from engine.policy.models.chunked_logits import ends_with_head
from engine.policy.models.weights import FullWeights
from engine.recipes import load_recipe
from engine.resources.memory import GIB, learner_parts
from engine.resources.shapes import Shape, shape_of
from tests.engine.policy.test_layout import SMALL, gpt2, llama, tree_rows

LOSS = LossConfig(policy="ppo", clip_low=0.2, clip_high=0.3, kl_coefficient=0.1,
                  entropy_coefficient=0.05)  # fmt: skip


def updated_stats(model, layout=RowLayout.PADDED, budget=10_000, again=False, at_once=None):
    """(stats, gradients) of one update."""
    model = copy.deepcopy(model)
    training = TrainingConfig(
        row_layout=layout, micro_batch_tokens=budget, recompute_activations=again, minibatches=2
    )
    agent = AgentConfig(name="tiny", model="-", optimizer={"learning_rate": 1e-30})
    student = Learner(FullWeights(model, reload=lambda d: model), 0, agent, LOSS, training)
    if at_once is not None:
        student.logits_at_once = at_once
    stats = student.update(tree_rows(), 0.5)
    return stats, [p.grad for p in model.parameters()]


@pytest.mark.parametrize(
    "make, tolerance, layout",
    [
        (gpt2, 1e-9, "padded"),
        (gpt2, 1e-9, "packed"),
        (gpt2, 1e-9, "prefix"),
        (llama, 1e-6, "prefix"),
    ],
)
def test_recomputed_activations_give_the_same_gradient(make, tolerance, layout):
    model = make()
    stats, expected = updated_stats(model)
    # 500 logits are 7 positions of the 64 tokens.
    actual, gradients = updated_stats(model, layout, 300, again=True, at_once=500)
    assert actual.layout == layout and actual.layout_reason == ""
    assert actual.loss == pytest.approx(stats.loss, abs=tolerance)
    assert actual.entropy == pytest.approx(stats.entropy, abs=1e-6)
    for one, other in zip(expected, gradients, strict=True):
        assert (one - other).abs().max() <= tolerance * max(1.0, stats.gradient_norm)


def kept(model, rows, at_once=None):
    """(bytes that a forward pass keeps for its gradient, those of the largest tensor)."""
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    sizes = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        logprobs_NL, _ = output_logprobs(model, rows, at_once=at_once)
    assert logprobs_NL.requires_grad
    return sum(sizes.values()), max(sizes.values())


def test_neither_logits_nor_activations_are_kept():
    torch.manual_seed(0)
    shape = SMALL | {"vocab_size": 16384, "num_key_value_heads": 2, "num_hidden_layers": 6}
    model = LlamaForCausalLM(LlamaConfig(**shape)).train()
    rows = tree_rows()
    trie = share_prefixes([inputs_of(row) for row in rows])
    for batch in (pad_rows(rows, 0, "cpu"), pack_rows(rows, trie, 0, "cpu")):
        model.gradient_checkpointing_disable()
        whole, largest = kept(model, batch)
        layers, rest = kept(model, batch, at_once=16384)
        assert largest >= 4 * 16384 * int(batch.mask_NL.sum()) / 2 and rest < largest / 4
        recompute_activations(model)
        assert kept(model, batch, at_once=16384)[0] < layers / 2 and layers < whole


def test_a_model_that_transforms_its_logits_computes_all_of_them():
    assert ends_with_head(gpt2()) and ends_with_head(llama())
    torch.manual_seed(0)
    model = Gemma2ForCausalLM(
        Gemma2Config(**SMALL | {"num_key_value_heads": 2, "head_dim": 8}, pad_token_id=0)
    ).eval()
    assert not ends_with_head(model)
    assert "forward" not in vars(model.get_output_embeddings())
    stats, expected = updated_stats(model)
    actual, gradients = updated_stats(model, at_once=100, again=True)
    assert actual.loss == pytest.approx(stats.loss, abs=1e-5)
    for one, other in zip(expected, gradients, strict=True):
        assert (one - other).abs().max() <= 1e-5 * max(1.0, stats.gradient_norm)


@pytest.mark.parametrize("size", [4, 2])
@pytest.mark.parametrize("kind", [(LlamaForCausalLM, LlamaConfig), (Qwen3ForCausalLM, Qwen3Config)])
def test_the_estimate_of_a_layer_is_the_memory_it_keeps(tmp_path, kind, size):
    rows = [TrainingRow([n] * 8, [5] * 40, [-3.0] * 40, 0.0, 0) for n in range(3)]
    batch = pack_rows(rows, pack([inputs_of(row) for row in rows]), 0, "cpu")
    tokens, results = batch.ids_1T.numel(), []
    for layers in (1, 2):
        torch.manual_seed(0)
        shape = SMALL | {"num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": layers}
        model = kind[0](kind[1](**shape)).to(torch.float32 if size == 4 else torch.bfloat16).train()
        kept_all = kept(model, batch, at_once=64)[0]
        recompute_activations(model)
        results.append((kept_all, kept(model, batch, at_once=64)[0]))
    model.config.save_pretrained(tmp_path)
    shape = shape_of(str(tmp_path))
    (one, one_again), (two, two_again) = results
    assert (two - one) / tokens == pytest.approx(shape.activation_bytes_per_token(size), rel=0.02)
    assert (two_again - one_again) / tokens == pytest.approx(size * shape.width, rel=0.02)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_estimate_of_weights_and_optimizer_is_the_memory_of_a_learner(dtype):
    model = llama(tie_word_embeddings=True).to(getattr(torch, dtype))
    config = load_recipe("tree-single", {"compute.dtype": dtype, "loss.kl_coefficient": 0.1})
    weights = FullWeights(model, reload=lambda d: model)
    student = Learner(weights, 0, config.agents[0], config.loss, config.training)
    student.update(tree_rows(), 0.5)
    shape = Shape(2, 32, 4, 2, 8, 48, 64, tied=True)
    parts = learner_parts(config, config.agents[0], shape, 1)

    def held(tensors):
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors) / GIB

    masters = [
        m for m, w in zip(student.precise.masters, student.precise.run, strict=True) if m is not w
    ]
    moments = [
        s[k] for s in student.optimizers.own.state.values() for k in ("exp_avg", "exp_avg_sq")
    ]
    assert parts["trained weights"] == pytest.approx(held(masters), rel=0.02, abs=1e-9)
    assert parts["optimizer"] == pytest.approx(held(moments), rel=0.02)
    assert parts["reference"] == pytest.approx(
        held(weights.starting().__enter__().parameters()), rel=0.02
    )
    # The run weights' gradients existed too, until the last backward pass was accumulated.
    gradients = held(m.grad for m in student.precise.masters) + (
        held(model.parameters()) if masters else 0
    )
    assert parts["gradients"] == pytest.approx(gradients, rel=0.02)
