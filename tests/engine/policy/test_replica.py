"""Tests of generation from a copy of the weights in another precision, full and with adapters."""

import copy

import pytest
import torch
from pydantic import ValidationError
from transformers import LlamaConfig, LlamaForCausalLM

from engine.config.agents import (
    AgentConfig,
    DecodingWeights,
    GeneratorConfig,
    LoraConfig,
    SamplingConfig,
)
from engine.policy.generators.replica import (
    DecodingLinear,
    Replica,
    multiplies_bfloat16,
    quantized,
    resolve,
)
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.adapters import AdapterBase, AdapterWeights

PRECISIONS = [DecodingWeights.FLOAT32, DecodingWeights.BFLOAT16, DecodingWeights.INT8]
NEAR = {
    DecodingWeights.FLOAT32: (1e-4, 1e-4),
    DecodingWeights.BFLOAT16: (0.02, 0.25),
    DecodingWeights.INT8: (0.04, 0.5),
}
"""(mean, most) nats by which a token's log-probability may differ from the learner's."""


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        initializer_range=0.1, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def adapted(model):
    lora = LoraConfig(rank=4)
    agent = AgentConfig(name="one", model="starter:oak", lora=lora)
    weights = AdapterWeights(AdapterBase("starter:oak", model), agent, lora)
    torch.manual_seed(1)
    for weight in weights.trained():
        torch.nn.init.normal_(weight.data, std=0.05)
    return weights


def written(generator, count=6):
    prompts = [[1 + (7 * row + n) % 90 for n in range(9 + row)] for row in range(count)]
    prompts += [prompts[0]] * 2
    sampling = SamplingConfig(max_new_tokens=24)
    return generator.generate(prompts, sampling, 1, list(range(len(prompts))))


def gaps(model, answers):
    rows = [TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, 0.0, 0) for g in answers]
    with torch.no_grad():
        learned, _ = output_logprobs(model, pad_rows(rows, 0, "cpu"))
    return (learned - torch.tensor([g.logprobs for g in answers])).abs()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("with_adapter", [False, True], ids=["full", "adapter"])
def test_log_probs_of_a_copy_are_near_those_of_the_learner(model, precision, with_adapter):
    weights = adapted(model) if with_adapter else None
    before = [parameter.clone() for parameter in model.parameters()]
    generator = TorchGenerator(model, [], 0, 0, Replica(precision))
    with weights.current() if weights else torch.no_grad():
        generator.use(model, 1)
        gap = gaps(model, written(generator))
    mean, most = NEAR[precision]
    assert gap.mean() < mean and gap.max() < most
    assert precision is DecodingWeights.FLOAT32 or gap.max() > 1e-4  # it is another precision
    assert all(map(torch.equal, before, model.parameters()))
    assert model.dtype == torch.float32


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_copy_follows_the_versions_of_all_weights(model, precision):
    generator = TorchGenerator(model, [], 0, 0, Replica(precision))
    generator.use(model, 1)
    written(generator)
    before = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    generator.reset_prefix_cache()
    generator.use(model, 2)
    answers = written(generator)
    # Rounding differs by processor, and these weights are larger; those of before are nats away.
    assert gaps(model, answers).mean() < min(
        2 * NEAR[precision][0], gaps(before, answers).mean() / 20
    )


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_adapters_small_update_is_not_rounded_away(model, precision):
    """A change of 1e-4 is far below a step of the weights in int8 and in bfloat16."""
    weights, ids = adapted(model.requires_grad_(False)), torch.tensor([[5, 6, 7, 8]])
    replica, outputs = Replica(precision), []
    layer = model.model.layers[0].mlp.up_proj
    x = torch.randn(3, 64).to(torch.float32 if precision == "float32" else torch.bfloat16)
    with weights.current() as current, torch.no_grad():
        for version in (1, 2):
            copied = replica.of(current, version).model.layers[0].mlp.up_proj
            (down, up) = copied._adapters[0]
            outputs.append((x.float() @ down.float() @ up.float(), copied(x).float()))
            frozen = copied._weight
            adapter = layer.lora_B[weights.name].weight
            adapter.add_(1e-4 * torch.ones_like(adapter))
        assert replica.of(current, 2).model.layers[0].mlp.up_proj._weight is frozen
        assert replica.of(current, 2)(ids).logits.isfinite().all()
    (before, _), (after, _) = outputs
    exact = layer.scaling[weights.name] * 1e-4 * (x.float() @ layer.lora_A[weights.name].weight.T)
    moved = (after - before).sum(1)
    assert torch.allclose(moved, exact.sum(1) * len(before[0]), rtol=0.2, atol=1e-3)


def test_the_starting_policy_is_the_copy_without_the_adapter(model):
    expected = model(torch.tensor([[3, 4, 5]])).logits.detach()
    weights, replica = adapted(model.requires_grad_(False)), Replica(DecodingWeights.FLOAT32)
    with torch.no_grad():
        for context, same in ((weights.current, False), (weights.starting, True)):
            with context() as current:
                version = 0 if same else 1
                logits = replica.of(current, version)(torch.tensor([[3, 4, 5]])).logits
            assert torch.allclose(logits, expected, atol=1e-5) == same


def test_int8_weights_are_within_half_a_step():
    weight = torch.randn(40, 64) * torch.logspace(-3, 2, 40)[:, None]
    weight[7] = 0
    levels, scales = quantized(weight)
    error = (levels.float() * scales.float()[:, None] - weight).abs()
    step = scales.float()[:, None]
    assert (error <= 0.76 * step).all()  # the widest one, if the scale was rounded down
    assert error.div(step.clamp(min=1e-20)).mean() < 0.3


def test_large_passes_and_small_ones_of_int8_agree(model):
    copied = Replica(DecodingWeights.INT8).of(model, 1)
    ids = torch.randint(1, 96, (1, 100), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        large = copied(ids).logits[:, :20].float()
        small = copied(ids[:, :20]).logits.float()
    assert (large.log_softmax(-1) - small.log_softmax(-1)).abs().mean() < 0.02


@pytest.mark.parametrize("inputs", [20, 24, 33, 40])
def test_an_odd_number_of_inputs_is_not_read_past_its_end(inputs):
    torch.manual_seed(0)
    source = torch.nn.Linear(inputs, 64)
    copied = DecodingLinear(source, DecodingWeights.INT8)
    copied.refresh()
    x = torch.randn(3, inputs)
    for _ in range(20):  # what lies behind the weights differs
        gap = (copied(x.bfloat16()).float() - source(x)).abs().max()
        assert gap < 0.05


def copied_tensors(copied):
    """Memory of all weights of a copy, by its address."""
    layers = [m for m in copied.modules() if isinstance(m, DecodingLinear)]
    tensors = [*copied.parameters(), *(layer._weight for layer in layers)]
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_agents_over_one_frozen_model_have_one_copy_of_it(model, precision):
    base = AdapterBase("starter:oak", model)
    lora = LoraConfig(rank=4)
    agents = [AgentConfig(name=name, model="starter:oak", lora=lora) for name in ("one", "two")]
    weights = [AdapterWeights(base, agent, lora) for agent in agents]
    replicas, copies = [Replica(precision), Replica(precision)], []
    for own, replica in zip(weights, replicas, strict=True):
        with own.current() as current:
            copies.append(replica.of(current, 0))
    first, second = map(copied_tensors, copies)
    assert first == second
    # 7 matrices and 2 norms in each of 2 layers, the last norm, and the embedding, which is also
    # the output layer unless that is quantized.
    assert len(first) == 2 * 9 + 2 + (precision is DecodingWeights.INT8)


def test_frozen_weights_in_the_precision_of_the_copy_are_not_copied(model):
    frozen = model.to(torch.bfloat16).requires_grad_(False)
    own = {t.untyped_storage().data_ptr() for t in frozen.parameters()}
    replica = Replica(DecodingWeights.BFLOAT16)
    assert copied_tensors(replica.of(frozen, 0)) == own


def test_weights_that_learn_are_copied_for_each_agent(model):
    replicas = [Replica(DecodingWeights.BFLOAT16) for _ in range(2)]
    first, second = (copied_tensors(replica.of(model, 0)) for replica in replicas)
    assert not first & second


def test_auto_is_what_the_cpu_multiplies():
    expected = DecodingWeights.BFLOAT16 if multiplies_bfloat16() else DecodingWeights.INT8
    assert resolve(DecodingWeights.AUTO) is expected
    assert resolve(DecodingWeights.FLOAT32) is DecodingWeights.FLOAT32


def test_vllm_takes_no_copy():
    with pytest.raises(ValidationError, match="weights = int8 has no effect with name = vllm"):
        GeneratorConfig(name="vllm", weights="int8")
    assert GeneratorConfig(weights="int8").weights is DecodingWeights.INT8


def test_a_copy_shares_no_tensor_with_the_model(model):
    own = {t.data_ptr() for t in model.parameters()}
    copied = Replica(DecodingWeights.FLOAT32).of(model, 1)
    layers = [m for m in copied.modules() if hasattr(m, "_weight")]
    assert len(layers) == 2 * 7 + 1
    tensors = [*copied.parameters(), *(layer._weight for layer in layers)]
    assert not own & {t.data_ptr() for t in tensors}
