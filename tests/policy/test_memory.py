"""What the learner computes again instead of keeping it changes no gradient, and is not kept."""

import copy

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

from engine.config import AgentConfig, LossConfig, RowLayout, TrainingConfig
from engine.policy.forward import inputs_of, output_logprobs, pack_rows, pad_rows
from engine.policy.head import ends_with_head
from engine.policy.learner import Learner
from engine.policy.recompute import recompute_activations
from engine.policy.trie import share_prefixes
from engine.policy.weights import FullWeights
from tests.policy.test_layout import SMALL, gpt2, llama, tree_rows

LOSS = LossConfig(policy="ppo", clip_low=0.2, clip_high=0.3, kl_coefficient=0.1,
                  entropy_coefficient=0.05)  # fmt: skip


def learned(model, layout=RowLayout.PADDED, budget=10_000, again=False, at_once=None):
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
def test_what_is_computed_again_has_the_same_gradient(make, tolerance, layout):
    model = make()
    stats, expected = learned(model)
    # 500 logits are 7 positions of the 64 tokens.
    found, gradients = learned(model, layout, 300, again=True, at_once=500)
    assert found.layout == layout and found.layout_reason == ""
    assert found.loss == pytest.approx(stats.loss, abs=tolerance)
    assert found.entropy == pytest.approx(stats.entropy, abs=1e-6)
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
        assert kept(model, batch, at_once=16384)[0] < layers / 2 < whole / 4


def test_a_model_that_changes_its_logits_is_asked_for_all_of_them():
    assert ends_with_head(gpt2()) and ends_with_head(llama())
    torch.manual_seed(0)
    model = Gemma2ForCausalLM(
        Gemma2Config(**SMALL | {"num_key_value_heads": 2, "head_dim": 8}, pad_token_id=0)
    ).eval()
    assert not ends_with_head(model)
    assert "forward" not in vars(model.get_output_embeddings())
    stats, expected = learned(model)
    found, gradients = learned(model, at_once=100, again=True)
    assert found.loss == pytest.approx(stats.loss, abs=1e-5)
    for one, other in zip(expected, gradients, strict=True):
        assert (one - other).abs().max() <= 1e-5 * max(1.0, stats.gradient_norm)
