"""Tests that rows that join and leave a running batch are generated as they would be alone.

The reference generates one row in a plain loop: the whole row through the model for every token, no
cache, no padding, no other row.
"""

import pickle
import random

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    Lfm2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    Qwen2Config,
)

from engine.config.agents import SamplingConfig
from engine.events.vocabulary import StopReason
from engine.policy.generators.counter_rng import row_seed, uniforms
from engine.policy.generators.own_cache import OwnCacheRows
from engine.policy.generators.packed import PackedRows
from engine.policy.generators.rows import Order, Rows
from engine.policy.generators.sampling import draw
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.types import PartialGeneration, Piece

VOCABULARY, PAD, END = 90, 0, 1
ROTARY = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "max_position_embeddings": 96, "initializer_range": 0.2}  # fmt: skip
CONFIGS = {
    "llama": LlamaConfig(**ROTARY),
    "qwen2, eager": Qwen2Config(**ROTARY),
    "mistral, a sliding window": MistralConfig(**ROTARY, sliding_window=7),
    "gpt2, absolute positions": GPT2Config(
        vocab_size=VOCABULARY, n_positions=96, n_embd=32, n_layer=2, n_head=2,
        initializer_range=0.3, bos_token_id=None, eos_token_id=END,
    ),
}  # fmt: skip
OWN_CACHES = [
    Lfm2Config(**ROTARY, conv_L_cache=3, layer_types=["conv", "full_attention"], pad_token_id=PAD,
               bos_token_id=None, eos_token_id=END),
    MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=8,
                initializer_range=0.3, pad_token_id=PAD, bos_token_id=None, eos_token_id=END),
]  # fmt: skip
SETTINGS = [
    SamplingConfig(max_new_tokens=9),
    SamplingConfig(max_new_tokens=30, temperature=0.7),
    SamplingConfig(max_new_tokens=1, temperature=1.4),
    SamplingConfig(max_new_tokens=17, top_p=0.8, top_k=25),
    SamplingConfig(max_new_tokens=24, min_p=0.05, temperature=1.2),
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """One thread: models this small are slower on two, much slower if others use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model_of(config, seed=0, **options):
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, **options).eval()
    return model.requires_grad_(False)


@pytest.fixture(scope="module", params=CONFIGS, ids=str)
def model(request):
    if "eager" in request.param:  # which accumulates in float32 whatever the model's dtype
        return model_of(CONFIGS[request.param], attn_implementation="eager")
    return model_of(CONFIGS[request.param]).double()  # so that only real errors show


@pytest.fixture(scope="module")
def llama():
    return model_of(CONFIGS["llama"]).double()


def generator(model):
    return TorchGenerator(model, [END], PAD, 5)


def reference(model, prompt, sampling, seed, stop_ids=()):
    """(ids, log-probabilities) of one row, alone."""
    rows, ids, logprobs = Rows(), [], []
    answer = PartialGeneration(prompt, sampling, seed)
    rows.append([Order(0, answer, sampling.max_new_tokens, (), 0)])
    settings = rows.settings(range(1), torch.device("cpu"))
    numbers = torch.from_numpy(uniforms(rows._seeds[:1], rows.written[:1], 200))[0]
    context = getattr(model.config, "max_position_embeddings", 10**6)
    while len(ids) < min(sampling.max_new_tokens, context - len(prompt)):
        logits = model(torch.tensor([prompt + ids]), use_cache=False).logits[:, -1]
        token, logprob = draw(logits, settings, numbers[len(ids)][None])
        ids.append(int(token))
        logprobs.append(float(logprob))
        if ids[-1] in (END, *stop_ids):
            break
    return ids, logprobs


def assert_same(written, expected):
    assert written.output_ids == expected[0]
    assert written.logprobs == pytest.approx(expected[1], abs=1e-5)


def some_requests(luck, count):
    """Prompts of any length, many of which share a prefix or are equal."""
    stems = [[luck.randrange(2, VOCABULARY) for _ in range(length)] for length in (40, 33, 5)]
    requests = []
    for number in range(count):
        stem = luck.choice(stems) if luck.random() < 0.7 else []
        tail = [luck.randrange(2, VOCABULARY) for _ in range(luck.choice([1, 2, 9, 20]))]
        prompt = stem + tail if not stem or luck.random() < 0.5 else list(stem)
        requests.append((prompt, luck.choice(SETTINGS), row_seed("a row", number)))
    return requests


def test_rows_that_join_and_leave_at_random_equal_single_rows(model):
    luck = random.Random(3)
    requests = some_requests(luck, 16)
    own, found, waiting = generator(model), {}, list(enumerate(requests))
    tickets = {}
    while waiting or own.unfinished:
        for _ in range(luck.choice([0, 0, 1, 5])):
            if waiting:
                number, (prompt, sampling, seed) = waiting.pop()
                (ticket,) = own.submit([prompt], [sampling], 0, [seed])
                tickets[ticket] = number
        found |= own.step()
        if luck.random() < 0.05:
            own.reset_prefix_cache()
    assert isinstance(own._batch, PackedRows)
    assert len(found) == len(requests)
    for ticket, written in found.items():
        assert_same(written, reference(model, *requests[tickets[ticket]]))


def stopped_and_carried_on(own, requests, moments, change=lambda version: None):
    """Finished answers by number of a generator that is stopped after these numbers of steps, and
    carries on as the next version after `change`."""
    tickets = own.submit(*[list(one) for one in zip(*requests, strict=True)][:2], 0,
                         [seed for _, _, seed in requests])  # fmt: skip
    found = {}
    for version, steps in enumerate(moments, start=1):
        for _ in range(steps):
            found |= own.step()
        stopped = own.take_partial()
        assert own.unfinished == 0 and stopped.keys() | found.keys() == set(tickets)
        change(version)
        own.reset_prefix_cache()
        own.carry_on(stopped, version)
    while own.unfinished:
        found |= own.step()
    return {tickets.index(ticket): written for ticket, written in found.items()}


def assert_pieces_fit(written):
    versions = [piece.version for piece in written.pieces]
    assert versions == sorted(set(versions)) and len(versions) != 1
    if versions:
        assert written.policy_version == versions[0]
        assert sum(piece.tokens for piece in written.pieces) == len(written.output_ids)
        assert min(piece.tokens for piece in written.pieces) > 0


def test_pieces_equal_the_whole_answer_while_weights_stay(model):
    requests = some_requests(random.Random(8), 10)
    found = stopped_and_carried_on(generator(model), requests, [0, 1, 4, 0, 9])
    assert len(found) == len(requests)
    for number, written in found.items():
        assert_same(written, reference(model, *requests[number]))
        assert_pieces_fit(written)
    assert max(len(written.pieces) for written in found.values()) > 2
    longest = max(found.values(), key=lambda written: len(written.pieces))
    assert longest.pieces[0].tokens == 2  # the step that runs its prompt draws two


def test_the_tail_follows_the_new_weights_and_the_head_keeps_its_own():
    old, new = model_of(CONFIGS["llama"]).double(), model_of(CONFIGS["llama"], 1).double()
    model, requests = model_of(CONFIGS["llama"]).double(), some_requests(random.Random(9), 8)

    def change(version):
        model.load_state_dict(new.state_dict())

    found = stopped_and_carried_on(generator(model), requests, [5], change)
    changed = 0
    for number, written in found.items():
        prompt, sampling, seed = requests[number]
        head = written.pieces[0].tokens if written.pieces else len(written.output_ids)
        kept = reference(old, prompt, sampling, seed)
        assert written.output_ids[:head] == kept[0][:head]
        assert written.logprobs[:head] == pytest.approx(kept[1][:head], abs=1e-5)
        if not written.pieces:
            continue
        # What follows is drawn with the row's next random numbers from the new weights, whose
        # keys and values are also those of the head.
        logits = new(torch.tensor([prompt + written.output_ids]), use_cache=False).logits[0]
        places = range(len(prompt) + head - 1, len(prompt) + len(written.output_ids) - 1)
        rows, numbers = Rows(), uniforms(np.array([seed]), np.array([0]), 200)[0]
        rows.append([Order(0, PartialGeneration(prompt, sampling, seed), 99, (), 0)])
        settings = rows.settings(range(1), torch.device("cpu"))
        for at, place in enumerate(places, start=head):
            number = torch.tensor(numbers[at : at + 1])
            token, logprob = draw(logits[place][None], settings, number)
            assert written.output_ids[at] == int(token)
            assert written.logprobs[at] == pytest.approx(float(logprob), abs=1e-5)
        changed += written.output_ids != kept[0]
    assert changed > 1, "new weights wrote what the old ones would have written"


def test_a_stop_between_pieces_of_one_version_leaves_no_seam(llama):
    answer = PartialGeneration([5, 6], SamplingConfig(max_new_tokens=9), 3)
    first = answer.longer(4, [7, 8], [-1.0, -2.0], 0.5)
    same = first.longer(4, [7, 8, 9], [-1.0, -2.0, -3.0], 0.25)
    assert (same.pieces, same.seconds, same.context) == ((Piece(4, 3),), 0.75, [5, 6, 7, 8, 9])
    assert same.longer(5, same.output_ids, same.logprobs, 0.0).pieces == same.pieces
    whole = same.ended(4, [7, 8, 9, 1], [-1.0, -2.0, -3.0, -4.0], StopReason.END_OF_TEXT, 1.0)
    assert (whole.pieces, whole.policy_version, whole.seconds) == ((), 4, 1.75)
    both = same.ended(6, [7, 8, 9, 1], [-1.0, -2.0, -3.0, -4.0], StopReason.END_OF_TEXT, 1.0)
    assert (both.pieces, both.policy_version) == ((Piece(4, 3), Piece(6, 1)), 4)
    assert pickle.loads(pickle.dumps(both)).pieces == both.pieces


def test_memory_that_is_too_small_is_moved_and_nothing_changes(llama):
    requests = some_requests(random.Random(4), 12)
    prompts, sampling, seeds = zip(*requests, strict=True)
    own = generator(llama)
    few = own.submit(prompts[:2], sampling[:2], 0, seeds[:2])
    found = {}
    for at in range(2, 12):  # each may need more rows, or more columns before or after
        found |= own.step()
        own.submit(prompts[at : at + 1], sampling[at : at + 1], 0, seeds[at : at + 1])
    while own.unfinished:
        found |= own.step()
    for ticket, written in found.items():
        assert_same(written, reference(llama, *requests[ticket - few[0]]))


def test_a_prompt_is_run_once_and_of_others_only_what_is_new(llama):
    tokens = []
    hook = llama.model.embed_tokens.register_forward_hook(
        lambda module, given, out: tokens.append(given[0].numel())
    )
    try:
        own, one = generator(llama), SamplingConfig(max_new_tokens=1)
        stem = list(range(2, 66))
        own.generate([[3]], one, 0)  # inspects the model
        tokens.clear()
        own.generate([stem] * 8, one, 0)
        assert tokens == [64]
        own.generate([[*stem, 70, 71], [*stem, 72]], one, 0)
        assert tokens == [64, 4]
        own.generate([stem], one, 0)  # its last token yields the next logits; blocks are of 16
        assert tokens == [64, 4, 16]
        own.reset_prefix_cache()
        own.generate([stem], one, 0)
        assert tokens == [64, 4, 16, 64]
    finally:
        hook.remove()


def test_a_cached_prompt_stays_alongside_a_new_one_of_equal_length(llama):
    stem, one = list(range(2, 20)), SamplingConfig(max_new_tokens=6)
    prompts = [list(range(40, 81)), stem + list(range(50, 73)), stem + list(range(30, 40))]
    own = generator(llama)
    own.generate([stem], one, 0)
    for prompt, written in zip(prompts, own.generate(prompts, one, 0, [7, 8, 9]), strict=True):
        assert_same(written, reference(llama, prompt, one, 7 + prompts.index(prompt)))


def test_the_first_token_may_be_the_last(llama):
    prompt, sampling = [5, 6, 7], SamplingConfig(max_new_tokens=20)
    first = reference(llama, prompt, sampling, 11)[0][0]
    own = generator(llama)
    (ticket,) = own.submit([prompt], [sampling], 0, [11], stop_ids=[first])
    beside = own.submit([prompt] * 3, [sampling] * 3, 0, [12, 13, 14])
    written = own.step()[ticket]
    assert (written.output_ids, written.stop) == ([first], StopReason.END_OF_TEXT)
    found = {}
    while own.unfinished:
        found |= own.step()
    for ticket, seed in zip(beside, (12, 13, 14), strict=True):
        if ticket in found:
            assert_same(found[ticket], reference(llama, prompt, sampling, seed))


def test_a_row_ends_where_the_context_does(model):
    if model.config.model_type == "mistral":
        pytest.skip("the same positions as llama's")
    prompt = [2 + n % 80 for n in range(90)]
    sampling = SamplingConfig(max_new_tokens=50, min_p=0.01)
    seed = next(  # of a row that has not ended by itself before
        seed for seed in range(50) if len(reference(model, prompt, sampling, seed)[0]) == 6
    )
    (written,) = generator(model).generate([prompt], sampling, 0, [seed])
    assert written.stop in (StopReason.CONTEXT_LIMIT, StopReason.END_OF_TEXT)
    assert (written.stop is StopReason.CONTEXT_LIMIT) == (written.output_ids[-1] != END)
    assert_same(written, reference(model, prompt, sampling, seed))
    with pytest.raises(ValueError, match=r"96 tokens .* context of 96; .*max_prompt_tokens"):
        generator(model).generate([[2] * 96], sampling, 0)


def test_a_cancelled_row_ends_and_changes_no_other(llama):
    requests = some_requests(random.Random(8), 9)
    own = generator(llama)
    tickets = own.submit(*map(list, zip(*[(p, s) for p, s, _ in requests], strict=True)), 0,
                         [seed for *_, seed in requests])  # fmt: skip
    found = own.step()
    unwanted = [ticket for ticket in tickets if ticket not in found][::2]
    late = own.submit([[4, 4]], [SETTINGS[0]], 0, [77])
    own.cancel([*unwanted, *late])
    while own.unfinished:
        found |= own.step()
    assert found.keys() == set(tickets) - set(unwanted)
    for ticket, written in found.items():
        assert_same(written, reference(llama, *requests[ticket - tickets[0]]))


def test_nan_logits_raise_and_leave_no_state(llama):
    own, sampling = generator(llama), SamplingConfig(max_new_tokens=9)
    expected = reference(llama, [5, 6, 7], sampling, 3)
    weight = llama.lm_head.weight
    before = weight.clone()
    try:
        weight.fill_(float("nan"))
        with pytest.raises(FloatingPointError, match="no numbers"):
            own.generate([[5, 6, 7]] * 3, sampling, 0)
    finally:
        weight.copy_(before)
    assert own.unfinished == 0
    assert_same(own.generate([[5, 6, 7]], sampling, 0, [3])[0], expected)


def test_a_row_does_not_depend_on_its_batch(llama):
    requests = some_requests(random.Random(6), 16)
    prompts, sampling, seeds = zip(*requests, strict=True)
    together = generator(llama).generate(prompts, sampling, 0, seeds)
    backwards = generator(llama).generate(prompts[::-1], sampling[::-1], 0, seeds[::-1])[::-1]
    alone = [generator(llama).generate([p], s, 0, [seed])[0] for p, s, seed in requests]
    for one, other, third in zip(together, backwards, alone, strict=True):
        assert one.output_ids == other.output_ids == third.output_ids
        assert one.logprobs == pytest.approx(third.logprobs, abs=1e-5)


@pytest.mark.parametrize("config", OWN_CACHES, ids=lambda config: config.model_type)
def test_a_model_that_keeps_something_else_is_written_a_batch_at_a_time(config):
    model = model_of(config)
    own = generator(model)
    prompts = [[5, 6, 7, 8], [5, 6, 7, 8], [9, 9], [9, 8, 7, 6, 5, 4]]
    sampling = [SamplingConfig(max_new_tokens=length) for length in (7, 3, 12, 1)]
    tickets = own.submit(prompts, sampling, 0, [1, 2, 3, 4])
    found = own.step()
    late = own.submit(prompts[:1], sampling[:1], 0, [5])
    while own.unfinished:
        found |= own.step()
    assert isinstance(own._batch, OwnCacheRows)
    for ticket, prompt, each, seed in zip(
        [*tickets, *late], [*prompts, prompts[0]], [*sampling, sampling[0]], range(1, 6),
        strict=True,
    ):  # fmt: skip
        assert_same(found[ticket], reference(model, prompt, each, seed))


@pytest.mark.parametrize("config", OWN_CACHES, ids=lambda config: config.model_type)
def test_a_model_with_a_cache_of_its_own_carries_on_too(config):
    model = model_of(config)
    requests = [([5, 6, 7, 8], SETTINGS[0], 1), ([9, 9], SETTINGS[1], 2), ([9, 8], SETTINGS[4], 3)]
    found = stopped_and_carried_on(generator(model), requests, [3, 4])
    for number, written in found.items():
        assert_same(written, reference(model, *requests[number]))
    assert any(written.pieces for written in found.values())


def test_rows_draw_numbers_that_are_even_and_have_nothing_to_do_with_one_another():
    seeds = np.array([row_seed(1, n) for n in range(400)])
    numbers = uniforms(seeds, np.zeros(400, np.int64), 200)
    assert numbers.min() >= 0 and numbers.max() < 1
    counts = np.histogram(numbers, bins=100, range=(0, 1))[0]
    assert ((counts - 800) ** 2 / 800).sum() < 99 + 5 * (2 * 99) ** 0.5  # chi-square
    error = 1 / 12 / (399 * 200) ** 0.5  # of the mean product of two centred numbers
    for one, other in ((numbers[1:], numbers[:-1]), (numbers[:, 1:], numbers[:, :-1])):
        assert abs(((one - 0.5) * (other - 0.5)).mean()) < 5 * error
    later = uniforms(seeds, np.full(400, 150), 50)
    assert (later == numbers[:, 150:]).all()
