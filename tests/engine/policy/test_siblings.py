"""Tests that siblings that read their prompt once equal rows that each read all of theirs.

A row that arrived alone has no siblings and uses the attention of its model. Heads are wide here,
so that a few tokens take as many bytes as the prompts of large models.
"""

import random

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    DeepseekV3Config,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
)

from engine.config.agents import SamplingConfig
from engine.policy.generators.cache import Layout, layout_of
from engine.policy.generators.counter_rng import row_seed
from engine.policy.generators.packed import PackedRows
from engine.policy.generators.prefix_cache import PrefixCache
from engine.policy.generators.siblings import Plan, Siblings
from engine.policy.generators.torch_generator import TorchGenerator
from tests.helpers.large import large_but

VOCABULARY, PAD, END = 90, 0, 1
WIDE = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 512, "max_position_embeddings": 256, "initializer_range": 0.2}  # fmt: skip
SHARED = {
    "llama, heads in groups": LlamaConfig(**WIDE),
    "granite, a scale of its own": GraniteConfig(
        **WIDE | {"num_attention_heads": 4}, attention_multiplier=0.11
    ),
}
OTHERS = {
    "mistral, a sliding window": MistralConfig(**WIDE, sliding_window=70),
    "qwen2, eager": Qwen2Config(**WIDE),
    "deepseek, values narrower than keys": DeepseekV3Config(
        **WIDE | {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32},
        n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
        first_k_dense_replace=2, kv_lora_rank=4096, q_lora_rank=16, qk_nope_head_dim=96,
        qk_rope_head_dim=32, v_head_dim=64,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """One thread: models this small are slower on two, much slower if others use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model_of(config, dtype=torch.float64, **options):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, **options).eval()
    return model.requires_grad_(False).to(dtype)


@pytest.fixture(scope="module")
def llama():
    return model_of(SHARED["llama, heads in groups"])


def prompt_of(luck, length):
    return [luck.randrange(2, VOCABULARY) for _ in range(length)]


def written_at_random(model, families, luck):
    """((request, answer) of every row; the attention plan of each step).

    Families of (prompt, lengths of answers) arrive at random steps, and a few rows are cancelled.
    """
    own, requests, found, plans = TorchGenerator(model, [END], PAD, 5), {}, {}, []
    waiting = list(enumerate(families))
    while waiting or own.unfinished:
        if waiting and (luck.random() < 0.2 or not own.unfinished):
            (number, (prompt, lengths)), mine = waiting.pop(), []
            for child, length in enumerate(lengths):
                sampling = SamplingConfig(max_new_tokens=length)
                mine.append((prompt, sampling, row_seed(number, child)))
            prompts, sampling, seeds = zip(*mine, strict=True)
            requests |= dict(zip(own.submit(prompts, sampling, 0, seeds), mine, strict=True))
        found |= own.step()
        plans.append(own._batch.plan)
        if luck.random() < 0.03:
            own.cancel(luck.choice(sorted(requests)) for _ in range(2))
    assert model.config._attn_implementation in ("sdpa", "eager")
    return [(requests[ticket], written) for ticket, written in found.items()], plans


def assert_equals_single_rows(model, written):
    own = TorchGenerator(model, [END], PAD, 5)
    for (prompt, sampling, seed), together in written:
        (alone,) = own.generate([prompt], sampling, 0, [seed])
        assert together.output_ids == alone.output_ids
        assert together.logprobs == pytest.approx(alone.logprobs, abs=1e-6)


def some_families(luck):
    """Families of 1 to 8 rows; prompts of three lengths, some too short for sharing to pay off."""
    sizes = [1, 2, 3, 4, 5, 6, 7, 8]
    luck.shuffle(sizes)
    return [
        (prompt_of(luck, luck.choice([9, 70, 84])), [luck.randrange(1, 16) for _ in range(size)])
        for size in sizes
    ]


@pytest.mark.parametrize("name", large_but(["llama, heads in groups"], SHARED))
def test_random_sibling_families_generate_what_each_row_generates_by_itself(name):
    model, luck = model_of(SHARED[name]), random.Random(7)
    written, plans = written_at_random(model, some_families(luck), luck)
    assert len(written) > 30
    parts = [plan.parts for plan in plans if plan]
    assert max(sum(part.prompt > 0 for part in each) for each in parts) > 1  # several families
    assert any(not part.prompt for each in parts for part in each)  # alongside rows without one
    assert any(isinstance(part.rows, torch.Tensor) for each in parts for part in each)
    assert any(not part.even for each in parts for part in each)
    assert any(plan and plan.output_index_N is not None for plan in plans)
    assert_equals_single_rows(model, written)


@pytest.mark.parametrize("name", OTHERS)
def test_models_that_it_does_not_fit_go_on_as_they_are(name):
    options = {"attn_implementation": "eager"} if "eager" in name else {}
    model, luck = model_of(OTHERS[name], **options), random.Random(2)
    families = [(prompt_of(luck, 80), [9, 5, 12, 3]), (prompt_of(luck, 70), [8])]
    written, plans = written_at_random(model, families, luck)
    assert any(plans) == ("deepseek" in name)  # there each layer detects that it does not apply
    assert_equals_single_rows(model, written)


def test_eight_children_are_one_part_and_what_they_read_is_their_prompt_and_their_own(llama):
    own = TorchGenerator(llama, [], PAD, 5)
    own.submit([prompt_of(random.Random(1), 70)] * 8, [SamplingConfig(max_new_tokens=4)] * 8, 0)
    own.step()
    (part,) = own._batch.plan.parts
    assert (part.rows, part.first, part.prompt, part.even) == (slice(0, 8), 0, 70, True)
    assert own._batch.plan.output_index_N is None


@pytest.mark.parametrize(
    ("dtype", "most", "mean"),
    [(torch.float32, 2e-4, 2e-5), (torch.bfloat16, 0.25, 0.03)],
    ids=["float32", "bfloat16"],
)
def test_in_every_precision_logits_are_as_near_as_the_order_of_sums_allows(dtype, most, mean):
    model, luck = model_of(SHARED["llama, heads in groups"], dtype), random.Random(4)
    prompt, layout = prompt_of(luck, 200), layout_of(model, PAD)
    together, apart, lone = (PackedRows(model, layout, PAD, 10**4) for _ in range(3))
    apart.siblings.shares_heads = False  # the model's own attention
    with torch.inference_mode():
        together.join(together.run([prompt], PrefixCache(10**4))[0], [0] * 8, 16)
        for _ in range(8):  # rows that join one by one are no siblings
            for rows in (apart, lone):
                rows.join(rows.run([prompt], PrefixCache(10**4))[0], [0], 16)
        assert together.plan and not apart.plan
        assert [part.prompt for part in lone.plan.parts] == [0]
        for _ in range(12):
            tokens_N = torch.tensor(prompt_of(luck, 8))
            theirs = apart.step(tokens_N).float().log_softmax(-1)
            for rows in (together, lone):
                gap = (rows.step(tokens_N).float().log_softmax(-1) - theirs).abs()
                assert gap.max() < most and gap.mean() < mean


def plan_of(siblings, lengths) -> Plan | None:
    lengths = np.array(lengths)
    return siblings.plan(lengths.max() - lengths, int(lengths.max()))


def siblings_of(bytes_per_token, *joined):
    layout = Layout(((4, 1, 1),), ((0, 0), (0, 1)), ((0, 2), (0, 3)), (False, False),
                    torch.float32, 2 * bytes_per_token)  # fmt: skip
    siblings = Siblings(layout)
    for index, lengths in joined:
        siblings.join(index, np.array(lengths))
    return siblings


def test_it_is_done_only_where_it_saves_more_than_it_costs():
    """Small models' trees, 32 prompts of 192 tokens at 1 KiB per token, gain nothing."""
    trees = [tree for tree in range(32) for _ in range(2)]
    assert plan_of(siblings_of(1024, (trees, [192] * 64)), [192] * 64) is None
    assert plan_of(siblings_of(2048, ([0] * 8, [512] * 8)), [513] * 8)
    assert plan_of(siblings_of(2048, ([0], [512]), ([0], [512])), [513] * 2) is None
    lone = ([2, 2], [4, 4])  # alongside rows that stay where they are
    assert plan_of(siblings_of(2048, ([0] * 8, [512] * 8), lone), [513] * 8 + [5] * 2)


def test_scattered_siblings_share_attention_until_copies_cost_more():
    siblings = siblings_of(4096, ([0] * 3 + [1] * 4, [1500] * 7))
    siblings.leave([0], [6], 6)  # a row of the second family is now before the first
    plan = plan_of(siblings, [1510] * 6)
    first, second = sorted(plan.parts, key=lambda part: part.one, reverse=True)
    assert first.rows == slice(1, 3) and second.rows.tolist() == [0, 3, 4, 5]
    order = np.concatenate([np.arange(6)[part.rows] for part in plan.parts])
    assert order[plan.output_index_N].tolist() == [0, 1, 2, 3, 4, 5]
    assert len(plan_of(siblings, [1500 + 400] * 6).parts) == 2
    late = plan_of(siblings, [1500 + 500] * 6)
    assert [part.prompt for part in late.parts] == [1500, 0, 0]
