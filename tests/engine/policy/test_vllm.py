"""Tests of vLLM as generator, on this CPU: one engine for the module; the last test kills it."""

from dataclasses import replace
from inspect import signature

import psutil
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.config.agents import SamplingConfig
from engine.config.schema import ConfigError, parse_config
from engine.events.vocabulary import StopReason
from engine.policy.generators import GeneratorError
from engine.policy.host import PolicyHost
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.rows import TrainingRow
from engine.policy.types import AnswerCall, PartialGeneration, Piece, Request
from engine.problems.generator import GeneratedProblems, Split
from tests.helpers.extras import needs_vllm
from tests.helpers.policies import tiny_config

pytestmark = [pytest.mark.slow, needs_vllm]

TOLERANCE = 1e-3
"""Nats per token in float32, as stated in `vllm_generator`."""
PROBLEMS = GeneratedProblems(3).first(Split.TRAIN, 4)
LONG = [7, 8, 9, 10, 11] * 60
"""A prompt of more than one block of the prefix cache."""


def config_of(model="starter:oak", generator=None, **sampling):
    options = {
        "model": model,
        "generator": {"name": "vllm", "cpu_cache_gib": 0.1, **(generator or {})},
        "sampling": {"max_prompt_tokens": 400, "max_new_tokens": 24, **sampling},
    }
    (agent,) = tiny_config("-").model_dump(mode="json")["agents"]
    return tiny_config(agents=[{**agent, **options}])


def host_of(config):
    return PolicyHost([config.agents], config, [7])


@pytest.mark.large
def test_a_transfer_on_a_gpu_is_one_that_this_vllm_takes():
    """Checks code that runs on GPUs alone against vLLM's own types."""
    from vllm.config.weight_transfer import WeightTransferConfig
    from vllm.distributed.weight_transfer import VLLMWeightSyncClient
    from vllm.v1.engine.async_llm import AsyncLLM

    from engine.policy.generators.vllm_weights import Client, TransferSender

    shape = {"hidden_size": 4096, "num_hidden_layers": 1, "vocab_size": 151936}
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**shape)).to(torch.bfloat16)
    info = TransferSender("ipc", 1).meeting(model)
    assert info.packed_buffer_size_bytes == 2 * 4096 * 151936, "as large as the embedding"
    result = TransferSender("nccl", 2).meeting(model)
    assert (result.rank, result.world_size) == (0, 3) and result.master_port > 0
    assert isinstance(Client(None), VLLMWeightSyncClient)
    for backend in (info.backend, result.backend):
        assert WeightTransferConfig(backend=backend).backend == backend
    for method, arguments in (
        (AsyncLLM.sleep, {"level": 2, "mode": "wait"}),
        (AsyncLLM.wake_up, {"tags": ["weights"]}),
        (AsyncLLM.pause_generation, {"mode": "wait", "clear_cache": True}),
        (AsyncLLM.pause_generation, {"mode": "abort", "clear_cache": False}),
    ):
        signature(method).bind(None, **arguments)


@pytest.fixture(scope="module")
def group():
    host = host_of(config_of())
    yield host.policies["agent-0"]
    host.close()


def answers(group, **options):
    requests = {"agent-0": [Request(problem) for problem in PROBLEMS]}
    return [
        answer.generation for answer in group.answer(AnswerCall(requests, **options))["agent-0"]
    ]


def gaps(model, generations):
    """Absolute difference of every token's log-probability by vLLM and by transformers."""
    rows = [
        TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, 1.0, 0, g.temperature)
        for g in generations
    ]
    padded = pad_rows(rows, 0, "cpu")
    with torch.no_grad():
        logprobs_NL, _ = output_logprobs(model, padded)
    return (logprobs_NL - padded.rollout_logprobs_NL)[padded.mask_NL.bool()].abs()


def learn(group, generations):
    """Does one update; returns the weights from before it."""
    with torch.no_grad():
        old = type(group.weights.model)(group.weights.model.config)
        old.load_state_dict(group.weights.model.state_dict())
    rows = [
        TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, sign, g.policy_version, g.temperature)
        for g, sign in zip(generations, (1.0, -1.0, 1.0, -1.0), strict=True)
    ]
    group.learn(rows, 0.5)
    return old.eval()


def likeliest(policy, model, prompt, count):
    """The greedy continuation, by transformers."""
    ids = list(prompt)
    with torch.no_grad():
        while len(ids) < len(prompt) + count and ids[-1] not in policy.end_ids:
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def greedy(group, prompt, count):
    (written,) = group.generator.generate(
        [prompt], SamplingConfig(top_k=1, max_new_tokens=count), group.version
    )
    return written.output_ids


@pytest.mark.large
def test_after_every_sync_the_log_probabilities_are_those_of_the_new_weights(group):
    model = group.weights.model
    for _ in range(3):
        before = answers(group)
        assert gaps(model, before).max() < TOLERANCE
        old = learn(group, before)
        after = answers(group)
        assert {g.policy_version for g in after} == {group.version}
        assert {g.policy_version for g in before} == {group.version - 1}
        assert gaps(model, after).max() < TOLERANCE
        assert gaps(old, after).mean() > 5 * TOLERANCE
        prompt = before[0].prompt_ids
        assert greedy(group, prompt, 12) == likeliest(group.loaded, model, prompt, 12)


@pytest.mark.large
def test_nothing_of_the_old_weights_is_left_in_the_prefix_cache(group):
    generator, sampling = group.generator, SamplingConfig(max_new_tokens=4)

    def reused():
        before = generator.reused_tokens
        (written,) = generator.generate([LONG], sampling, group.version)
        return generator.reused_tokens - before, written

    answers(group)
    assert reused()[0] == 0
    assert reused()[0] >= len(LONG) // 2
    old = learn(group, answers(group))
    answers(group)  # transfers the new weights
    tokens, written = reused()
    assert tokens == 0
    assert gaps(group.weights.model, [written]).max() < TOLERANCE
    assert gaps(old, [written]).max() > TOLERANCE


@pytest.mark.large
def test_the_starting_weights_are_sampled_from_and_the_current_ones_again(group):
    learn(group, answers(group))
    start = answers(group, starting_weights=True)
    assert {g.policy_version for g in start} == {0} != {group.version}
    with group.weights.starting() as starting:
        assert gaps(starting, start).max() < TOLERANCE
    assert gaps(group.weights.model, answers(group)).max() < TOLERANCE


@pytest.mark.large
def test_a_temperature_and_a_seed_are_followed(group):
    cold = answers(group, temperature=0.6, stream=("here", 1))
    assert gaps(group.weights.model, cold).max() < TOLERANCE
    again, other = (answers(group, temperature=0.6, stream=("here", n)) for n in (1, 2))
    ids = [g.output_ids for g in cold]
    assert ids == [g.output_ids for g in again] != [g.output_ids for g in other]


@pytest.mark.large
def test_a_row_that_joins_a_running_batch_equals_a_single_row(group):
    requested = {n: ("agent-0", Request(p, name=("turn", n))) for n, p in enumerate(PROBLEMS)}
    whole = group.answer(AnswerCall({"agent-0": [request for _, request in requested.values()]}))[
        "agent-0"
    ]
    found = {}
    for number, request in requested.items():
        found |= group.write({number: request}, 0.01)
    learn(group, answers(group))  # finishes the rows in flight
    while len(found) < len(requested):
        found |= group.write({}, 60.0)
    for number, answer in enumerate(whole):
        mine, other = found[number].generation, answer.generation
        assert mine.output_ids == other.output_ids
        assert mine.policy_version == other.policy_version < group.version
        assert mine.logprobs == pytest.approx(other.logprobs, abs=TOLERANCE)


@pytest.mark.large
def test_new_weights_carry_on_what_was_stopped_inside(group):
    sampling = SamplingConfig(max_new_tokens=200, temperature=1.3)
    generator, prompts = group.generator, [LONG, *([LONG[:40]] * 5)]
    start = group.version
    batch = answers(group)
    with group.weights.current() as model:
        generator.use(model, group.version)
    tickets = generator.submit(prompts, [sampling] * len(prompts), start, range(len(prompts)))
    assert generator.ended(len(prompts), 0.3).keys() != set(tickets)
    stopped = generator.take_partial()
    done = generator.ended(generator.unfinished, 60.0)
    assert stopped and generator.unfinished == 0
    old = learn(group, batch)
    with group.weights.current() as model:
        generator.use(model, group.version)
    generator.carry_on(stopped, group.version)
    carried = {}
    while generator.unfinished:
        carried |= generator.ended(generator.unfinished, 60.0)
    assert carried.keys() == stopped.keys() and not any(one.pieces for one in done.values())
    both = [one for one in carried.values() if one.pieces]
    assert both, "no answer was stopped inside"
    for ticket, one in carried.items():
        before = stopped[ticket]
        head = len(before.output_ids)
        assert one.prompt_ids == prompts[tickets.index(ticket)]
        assert one.output_ids[:head] == list(before.output_ids)
        assert one.logprobs[:head] == list(before.logprobs)
        assert len(one.output_ids) == len(one.logprobs) <= sampling.max_new_tokens
        if one.pieces:
            assert [piece.version for piece in one.pieces] == [start, group.version]
            assert one.pieces[0].tokens == head and one.policy_version == start
        tail = replace(one, prompt_ids=[*one.prompt_ids, *one.output_ids[:head]],
                       output_ids=one.output_ids[head:], logprobs=one.logprobs[head:])  # fmt: skip
        assert gaps(group.weights.model, [tail]).max() < TOLERANCE
        if head:
            first = replace(one, output_ids=one.output_ids[:head], logprobs=one.logprobs[:head])
            assert gaps(old, [first]).max() < TOLERANCE
    new = [replace(one, logprobs=one.logprobs) for one in both]
    assert gaps(group.weights.model, new).mean() > TOLERANCE  # the heads are those of the old ones


@pytest.mark.large
def test_a_piece_repeats_no_random_numbers_and_ends_at_the_limit_of_the_whole(group):
    from engine.policy.generators.vllm_generator import _seed

    sampling, generator = SamplingConfig(max_new_tokens=60), group.generator
    with group.weights.current() as model:
        generator.use(model, group.version)
    (ticket,) = generator.submit([LONG], [sampling], group.version, [11])
    (answer,) = generator.take_partial().values()  # at any moment, also before its first token
    generator.carry_on({ticket: answer}, group.version)
    (one,) = generator.ended(1, 60.0).values()
    assert not one.pieces and one.policy_version == group.version
    assert len(one.output_ids) <= sampling.max_new_tokens
    assert gaps(group.weights.model, [one]).max() < TOLERANCE
    ids = list(one.output_ids[:3])
    half = PartialGeneration(LONG, sampling, 11, ids, one.logprobs[:3], (Piece(0, 3),))
    assert _seed(half) != _seed(PartialGeneration(LONG, sampling, 11)) == 11


@pytest.mark.large
def test_an_answer_ends_where_the_policy_ends_one_and_says_why(group):
    written = answers(group) + group.generator.generate(
        [LONG] * 8, SamplingConfig(max_new_tokens=60), group.version
    )
    ends = set(group.loaded.end_ids)
    for g in written:
        ended = g.output_ids[-1] in ends
        assert g.stop is (StopReason.END_OF_TEXT if ended else StopReason.MAX_TOKENS)
        assert not set(g.output_ids[:-1]) & ends and len(g.logprobs) == len(g.output_ids)
    assert {g.stop for g in written} == {StopReason.END_OF_TEXT, StopReason.MAX_TOKENS}


@pytest.mark.large
def test_more_prompts_are_answered_than_one_pass_of_the_model_takes(group):
    prompts = [[20 + number, *LONG] for number in range(48)]
    written = group.generator.generate(prompts, SamplingConfig(max_new_tokens=4), group.version)
    assert [g.prompt_ids for g in written] == prompts
    assert gaps(group.weights.model, written).max() < TOLERANCE


@pytest.mark.large
def test_log_probabilities_that_vllm_transforms_are_dropped(group):
    (written,) = group.generator.generate([LONG], SamplingConfig(top_p=0.5), group.version)
    assert written.output_ids and written.logprobs == []


def test_settings_that_vllm_cannot_follow_are_refused_with_their_path():
    def refused(generator=None, **sections):
        config = config_of().model_dump(mode="json")
        config["agents"][0]["sampling"] |= sections.pop("sampling", {})
        config["agents"][0]["generator"] |= generator or {}
        with pytest.raises(ConfigError) as error:
            parse_config(config | sections)
        (problem,) = error.value.problems
        return problem["path"], problem["reason"]

    path, reason = refused(sampling={"top_p": 0.9, "temperature": 0.7})
    assert path == "agents.0.sampling.temperature" and "set it to 1" in reason
    path, reason = refused(sampling={"temperature": 0.001})
    assert path == "agents.0.sampling.temperature" and "0.01" in reason
    path, reason = refused(compute={"deterministic": True})
    assert path == "agents.0.generator.name" and "torch" in reason
    path, reason = refused(generator={"name": "torch"})
    assert path == "agents.0.generator" and "cpu_cache_gib = 0.1 has no effect" in reason


@pytest.mark.large
def test_a_start_that_fails_names_the_first_cause_and_the_remedy():
    with pytest.raises(GeneratorError, match=r"agents.agent-0.generator.*heads of 28.*to torch"):
        host_of(config_of("starter:fern"))
    with pytest.raises(GeneratorError, match=r"vLLM could not start: .*max_model_len"):
        host_of(config_of(generator={"max_model_len": 100_000}))
    with pytest.raises(GeneratorError, match=r"could not start: ValueError: .*memory.*; lower"):
        host_of(config_of(generator={"cpu_cache_gib": 4000}))


@pytest.mark.large
def test_an_engine_that_dies_is_named_and_nothing_waits_for_it(group):
    children = psutil.Process().children(recursive=True)
    (engine,) = [child for child in children if "EngineCore" in child.name()]
    engine.kill()
    with pytest.raises(GeneratorError, match=r"agents.agent-0.generator: vLLM could not"):
        answers(group)
