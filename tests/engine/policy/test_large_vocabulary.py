"""Tests that no tensor of tokens by vocabulary exists while a model of a large vocabulary generates
and learns with adapters."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import LlamaConfig, LlamaForCausalLM

from engine.config.agents import AgentConfig, DecodingWeights, LoraConfig, SamplingConfig
from engine.config.loss import LossConfig
from engine.config.training import RowLayout, TrainingConfig
from engine.policy.generators.replica import Replica
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.learner.learner import Learner
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.adapters import AdapterBase, AdapterWeights
from engine.policy.models.chunked_logits import LogprobQuery, query_logprobs
from engine.resources.shapes import CPU_LOGITS_AT_ONCE, LARGE_VOCABULARY, logits_at_once
from tests.helpers.large import large_but

VOCABULARY = 49_152
SHAPE = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "max_position_embeddings": 1024, "initializer_range": 0.1,
    "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0,
}  # fmt: skip
LORA = LoraConfig(rank=2)


class WidestLogits(TorchDispatchMode):
    """Records the largest tensor whose last axis is the vocabulary, forward and backward."""

    positions = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        for result in tree_leaves(results):
            if isinstance(result, torch.Tensor) and result.shape[-1:] == (VOCABULARY,):
                self.positions = max(self.positions, math.prod(result.shape[:-1]))
        return results


def llama(vocabulary=VOCABULARY):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **SHAPE)).eval()


def adapted(model):
    agent = AgentConfig(name="one", model="starter:oak", lora=LORA)
    weights = AdapterWeights(AdapterBase("starter:oak", model), agent, LORA)
    for weight in weights.trained():
        torch.nn.init.normal_(weight.data, std=0.1)
    return weights


def rows(count=4, prompt=30, output=200):
    draws = torch.Generator().manual_seed(1)

    def ids(length):
        return torch.randint(1, VOCABULARY, (length,), generator=draws).tolist()

    return [
        TrainingRow(ids(prompt), ids(output), [-10.8] * output, 1.0 - 2 * (row % 2), 0)
        for row in range(count)
    ]


@pytest.mark.parametrize("precision", [None, DecodingWeights.BFLOAT16, DecodingWeights.INT8])
def test_a_prompt_and_a_step_have_logits_of_one_position_per_row(precision):
    model = llama().requires_grad_(False)
    generator = TorchGenerator(model, [], 0, 0, Replica(precision) if precision else None)
    generator.use(model, 0)
    prompts = [row.prompt_ids * 10 for row in rows(3)]
    with WidestLogits() as seen:
        generator.generate(prompts * 2, SamplingConfig(max_new_tokens=4), 0)
    assert seen.positions == 2 * 3


@pytest.mark.parametrize("layout", [RowLayout.PADDED, RowLayout.PACKED])
@pytest.mark.parametrize("entropy", large_but([0.01], [0.0, 0.01]))
def test_an_update_has_logits_of_few_positions_at_a_time(layout, entropy):
    weights = adapted(llama())
    agent = AgentConfig(name="one", model="starter:oak", lora=LORA)
    loss = LossConfig(policy="ppo", kl_coefficient=0.1, entropy_coefficient=entropy)
    training = TrainingConfig(row_layout=layout, micro_batch_tokens=4096, minibatches=2)
    learner = Learner(weights, 0, agent, loss, training)
    learner.layout  # noqa: B018  (its trial passes are before)
    before = [weight.detach().clone() for weight in weights.trained()]
    with WidestLogits() as seen:
        stats = learner.update(rows(), 0.5)
    assert stats.nodes == 4 and not all(map(torch.equal, before, weights.trained()))
    # A minibatch of two rows has 400 positions in one pass.
    assert 0 < seen.positions <= CPU_LOGITS_AT_ONCE // VOCABULARY == 85


@pytest.mark.parametrize("answers", [1, 3], ids=["one answer", "siblings"])
def test_a_frozen_output_layer_gives_the_gradient_of_all_logits(answers):
    vocabulary = 300
    weights, draws = adapted(llama(vocabulary).double()), torch.Generator().manual_seed(2)
    ids = torch.randint(1, vocabulary, (2, 20), generator=draws)
    query = LogprobQuery(
        torch.rand(40, generator=draws, dtype=torch.float64) + 0.5,
        torch.randint(0, vocabulary, (40, answers), generator=draws),
    )
    weighting = torch.randn(40, answers, generator=draws, dtype=torch.float64)
    results = []
    with weights.current() as model:
        for at_once in (None, 7 * vocabulary):
            logprobs, entropies = query_logprobs(model, query, at_once, input_ids=ids)
            gradients = torch.autograd.grad((logprobs * weighting).sum(), weights.trained())
            results.append((logprobs, entropies, *gradients))
    for whole, chunked in zip(*results, strict=True):
        assert torch.allclose(whole, chunked, rtol=1e-9, atol=1e-12)
    assert any(gradient.abs().max() > 0.1 for gradient in results[0][2:])


def test_small_vocabularies_and_gpus_keep_the_higher_maximum():
    assert logits_at_once(LARGE_VOCABULARY - 1, on_cpu=True) == logits_at_once(
        VOCABULARY, on_cpu=False
    )
    assert logits_at_once(VOCABULARY, on_cpu=True) == CPU_LOGITS_AT_ONCE
