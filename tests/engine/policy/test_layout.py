"""Tests that loss and gradient do not depend on how rows are cut, laid out and share prefixes."""

import copy
import random

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from engine.config.agents import AgentConfig
from engine.config.loss import Aggregation, LossConfig
from engine.config.training import RowLayout, TrainingConfig
from engine.losses import POLICY_LOSSES
from engine.policy.learner.forward import inputs_of, output_logprobs, pack_rows, pad_rows
from engine.policy.learner.layout import Layout
from engine.policy.learner.learner import Learner
from engine.policy.learner.rows import TrainingRow
from engine.policy.learner.trie import MIN_SAVED, pack, share_prefixes
from engine.policy.models.weights import FullWeights
from tests.helpers.large import large_but

SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 48, "max_position_embeddings": 256, "initializer_range": 0.3,
         "bos_token_id": None, "eos_token_id": None}  # fmt: skip
LENGTHS = [30, 50, 5]


def gpt2():
    """In float64 throughout, because Llama's norms round to float32 whatever the weights are."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=64, n_positions=256, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3,
        bos_token_id=None, eos_token_id=None, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
    )  # fmt: skip
    return GPT2LMHeadModel(config).to(torch.float64).eval()


def llama(**settings):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SMALL | {"num_key_value_heads": 2} | settings)).eval()


def tree_rows(seed=0):
    """Rows as in trees: siblings, prompts that extend a sibling's, unrelated rows, twins."""
    draw = random.Random(seed)

    def tokens(count):
        return [draw.randrange(64) for _ in range(count)]

    rows = []

    def add(prompt, length, temperature=1.0):
        row = TrainingRow(
            prompt, tokens(length), [-3.0] * length, draw.gauss(0, 1), 0, temperature,
            tree=len(rows) // 5, node=len(rows),
            columns={"zero_variance": len(rows) % 3 - 1.0, "scores": float(len(rows) % 3 == 0)},
        )  # fmt: skip
        rows.append(row)
        return row

    template = tokens(20)
    for length in LENGTHS:
        prompt = template + tokens(length)
        first = add(prompt, 9)
        add(prompt, 1)
        add(prompt, 14, temperature=0.7)
        repair = prompt + first.output_ids + tokens(18)
        add(repair, 6)
        add(repair, 7)
    add(tokens(33), 12)
    rows.append(rows[0])
    draw.shuffle(rows)
    return rows


def test_a_trie_holds_every_row_once_and_says_where():
    rows = [inputs_of(row) for row in tree_rows()]
    trie = share_prefixes(rows)
    ids_T = trie.ids(rows)
    for row, path in zip(rows, trie.paths, strict=True):
        assert ids_T[path].tolist() == row
        assert trie.positions()[path].tolist() == list(range(len(row)))
    covered = [p for s in trie.segments for p in range(s.start, s.start + s.length)]
    assert sorted(covered) == list(range(trie.tokens))
    for segment in trie.segments:
        whole = [*segment.above_P, *range(segment.start, segment.start + segment.length)]
        assert any(path[: len(whole)].tolist() == whole for path in trie.paths)
    # Duplicated tokens are fewer than a segment saves, at each point where rows diverge.
    prefixes = {tuple(row[:end]) for row in rows for end in range(1, len(row) + 1)}
    assert len(prefixes) <= trie.tokens < len(prefixes) + MIN_SAVED * len(rows)
    assert trie.tokens < sum(map(len, rows)) / 2
    assert pack(rows).tokens == sum(map(len, rows))


def test_a_prefix_that_saves_too_little_is_not_shared():
    short = [[*range(MIN_SAVED - 1), 50 + n] for n in range(2)]
    assert len(share_prefixes(short).segments) == 2
    longer = [[*range(MIN_SAVED), 50 + n] for n in range(2)]
    assert [s.length for s in share_prefixes(longer).segments] == [MIN_SAVED, 1, 1]
    many = [[*range(4), 50 + n] for n in range(9)]
    assert share_prefixes(many).tokens == 4 + 9


def test_deep_tries_and_odd_rows_are_laid_out():
    chain = [list(range(40)) + [40 + k for k in range(20 * n)] for n in range(60)]
    trie = share_prefixes(chain)
    assert trie.tokens == len(chain[-1])
    assert share_prefixes([]).tokens == 0 and share_prefixes([[7]]).tokens == 1
    twins = share_prefixes([[5] * 30] * 3)
    assert twins.tokens == 30 and len(twins.segments) == 1


def updated(model, loss, layout, budget, rows, apart=0.05):
    """(stats, gradients) of one real update; `apart` sets the distance of reference and policy."""
    agent = AgentConfig(name="tiny", model="-")
    training = TrainingConfig(row_layout=layout, micro_batch_tokens=budget)
    weights = FullWeights(copy.deepcopy(model), reload=lambda directory: model)
    with torch.no_grad():
        for weight in weights.starting().__enter__().parameters():
            weight.add_(apart * torch.sin(torch.arange(weight.numel())).view_as(weight))
    student = Learner(weights, 0, agent, loss, training)
    stats = student.update(rows, 0.5)
    return stats, [p.grad for p in student.weights.model.parameters()]


LAYOUTS = [
    (RowLayout.PADDED, 90),
    (RowLayout.PACKED, 10_000),
    (RowLayout.PACKED, 110),
    (RowLayout.PREFIX, 10_000),
    (RowLayout.PREFIX, 110),
]


PAIRS = [(loss, how) for loss in sorted(POLICY_LOSSES) for how in (None, *Aggregation)]


@pytest.mark.parametrize(("policy", "aggregation"), large_but(PAIRS[::5], PAIRS))
def test_the_gradient_is_the_same_in_every_layout(policy, aggregation):
    loss = LossConfig(
        policy=policy, aggregation=aggregation, kl_coefficient=0.1, entropy_coefficient=0.05
    )
    model, rows = gpt2(), tree_rows()
    stats, expected = updated(model, loss, RowLayout.PADDED, 10_000, rows)
    assert stats.kl > 0 and stats.gradient_norm > 0
    for layout, budget in LAYOUTS:
        actual, gradients = updated(model, loss, layout, budget, rows)
        assert actual.layout == layout
        for name in ("loss", "policy_loss", "kl", "clip_fraction", "entropy", "mismatch"):
            assert getattr(actual, name) == pytest.approx(getattr(stats, name), abs=1e-9), name
        for a, b in zip(expected, gradients, strict=True):
            assert (a - b).abs().max() <= 1e-9 * max(1e-3, float(a.abs().max()))


@pytest.mark.parametrize("minibatches", [1, 3])
def test_shared_prefixes_learn_what_rows_learn_one_by_one(minibatches):
    """In float32, several updates of a model with grouped keys and rotary positions."""
    finals = []
    for layout in (RowLayout.PADDED, RowLayout.PREFIX):
        training = TrainingConfig(row_layout=layout, minibatches=minibatches, max_staleness=9)
        model = llama()
        weights = FullWeights(copy.deepcopy(model), reload=lambda directory, m=model: m)
        student = Learner(weights, 0, AgentConfig(name="a", model="-"), LossConfig(), training)
        stats = [student.update(tree_rows(seed), 0.5) for seed in range(3)]
        finals.append([p.detach() for p in weights.model.parameters()])
    assert (
        stats[-1].layout == "prefix" and 2 * stats[-1].forwarded_tokens < stats[-1].row_tokens * 2
    )
    for a, b in zip(*finals, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def gap(model, rows):
    """Largest difference between log-probs of padded and shared rows, and between gradients of norm
    1, the size after which an optimizer steps by a clipped gradient."""
    padded = pad_rows(rows, 0, "cpu")
    packed = pack_rows(rows, share_prefixes([inputs_of(row) for row in rows]), 0, "cpu")
    results = []
    for batch in (padded, packed):
        model.zero_grad()
        logprobs_NL, _ = output_logprobs(model, batch)
        (logprobs_NL * batch.mask_NL).sum().backward()
        results.append((logprobs_NL * batch.mask_NL, [p.grad for p in model.parameters()]))
    (one, first), (other, second) = results
    norm = float(torch.nn.utils.get_total_norm(first))
    apart = max(float((a - b).abs().max()) for a, b in zip(first, second, strict=True))
    return float((one - other).detach().abs().max()), apart / norm


def test_in_float32_the_gradients_are_equal_to_one_part_in_a_million():
    logprobs, gradients = gap(llama(), tree_rows())
    assert logprobs < 1e-4 and gradients < 1e-6


def test_in_bfloat16_they_are_equal_to_its_eight_bits():
    logprobs, gradients = gap(llama().bfloat16(), tree_rows())
    assert logprobs < 0.5 and gradients < 0.05


def layout_of(model, chosen=RowLayout.AUTO, budget=16384):
    return Layout(model, chosen, budget, 0)


def test_a_budget_of_tokens_bounds_a_forward_pass():
    rows = tree_rows()
    for expected in (RowLayout.PACKED, RowLayout.PREFIX):
        for budget in (60, 150, 400):
            cut = layout_of(llama(), expected, budget).micro_batches(rows)
            assert sum(len(part.mask_NL) for part in cut.parts) == len(rows)
            for part in cut.parts:
                assert len(part.mask_NL) == 1 or part.ids_1T.shape[1] <= budget
            assert cut.forwarded == sum(part.ids_1T.shape[1] for part in cut.parts)


def siblings(prompt, response, group, prompts=1):
    draw = random.Random(0)
    rows = []
    for _ in range(prompts):
        own = [draw.randrange(64) for _ in range(prompt)]
        for _ in range(group):
            ids = [draw.randrange(64) for _ in range(response)]
            rows.append(TrainingRow(own, ids, [0.0] * response, 0.0, 0))
    return rows


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((128, 16, 8), RowLayout.PREFIX),
        ((128, 16, 1, 8), RowLayout.PADDED),  # prompts of one answer each
        ((4, 100, 8), RowLayout.PADDED),
        ((128, 16, 1), RowLayout.PADDED),
    ],
    ids=str,
)
def test_prefixes_are_shared_where_it_pays(shape, expected):
    model = llama(hidden_size=64, intermediate_size=160)
    assert layout_of(model).micro_batches(siblings(*shape)).layout is expected


def test_a_model_that_drops_units_at_random_shares_nothing():
    model = llama(attention_dropout=0.1)
    for expected, done in (("auto", "padded"), ("prefix", "packed"), ("packed", "packed")):
        layout = layout_of(model, RowLayout(expected))
        assert layout.allowed == done and "attention_dropout drops units" in layout.reason


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: MistralForCausalLM(MistralConfig(**SMALL, sliding_window=8)), "sliding_window"),
        (
            lambda: GptOssForCausalLM(
                GptOssConfig(
                    **SMALL, num_key_value_heads=2, head_dim=8, num_local_experts=2,
                    num_experts_per_tok=1, layer_types=["full_attention"] * 2,
                )
            ),
            "its attention takes s_aux",
        ),
        (
            lambda: BloomForCausalLM(
                BloomConfig(
                    vocab_size=64, hidden_size=32, n_layer=1, n_head=2, hidden_dropout=0.0,
                    attention_dropout=0.0, bos_token_id=None, eos_token_id=None,
                )
            ),
            "attention functions",
        ),
    ],
    ids=["sliding window", "sinks", "own attention"],
)  # fmt: skip
def test_a_model_that_cannot_be_packed_is_padded_and_the_reason_reported(model, reason):
    layout = layout_of(model(), RowLayout.PREFIX)
    assert layout.allowed is RowLayout.PADDED and reason in layout.reason
    assert layout.micro_batches(siblings(128, 16, 8)).layout is RowLayout.PADDED
