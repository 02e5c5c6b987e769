"""Tests of token in, token out: the learner sees and learns from what the generator reports."""

import copy
import math
from dataclasses import replace

import pytest
import torch

from engine.config.agents import AgentConfig, OptimizerConfig, SamplingConfig
from engine.config.loss import LossConfig
from engine.config.training import TrainingConfig
from engine.events.vocabulary import StopReason
from engine.policy.batching import PASS_TOKENS, length_buckets, prompt_groups
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.learner import Learner
from engine.policy.learner.objective import Objective, OptimizerGroup
from engine.policy.learner.optimizers import schedule_factor
from engine.policy.learner.rows import DEMONSTRATION, TrainingRow
from engine.policy.models.load import load_policy
from engine.policy.models.weights import FullWeights
from engine.training.buffers import AgentBuffer
from tests.helpers.policies import tiny_policy

PROMPTS = [[5, 6, 7], [9] * 40, [11, 12], [5, 6, 7], [20] * 17]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return load_policy(str(tiny_policy(tmp_path_factory.mktemp("models") / "tiny")))


def generator(policy, seed=0):
    return TorchGenerator(policy.model, policy.end_ids, policy.pad_id, seed)


def rows_of(policy, advantages=(1.0, -0.5, 0.7, -1.0, 0.3), version=0):
    generations = generator(policy).generate(PROMPTS, SamplingConfig(max_new_tokens=12), version)
    return [
        TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, a, g.policy_version)
        for g, a in zip(generations, advantages, strict=True)
    ]


def learner(policy, loss=None, **training):
    agent = AgentConfig(
        name="tiny",
        model="-",
        optimizer=OptimizerConfig(learning_rate=1e-2, schedule="constant", warmup_fraction=0),
    )
    weights = FullWeights(copy.deepcopy(policy.model), reload=lambda directory: policy.model)
    return Learner(weights, policy.pad_id, agent, loss or LossConfig(), TrainingConfig(**training))


def mean_and_largest_gap(policy, sampling):
    """Difference of the log-probs of generator and learner, in nats per token."""
    generations = generator(policy).generate(PROMPTS, sampling, 0)
    rows = [
        TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, 1.0, 0, g.temperature)
        for g in generations
    ]
    padded = pad_rows(rows, policy.pad_id, "cpu")
    with torch.no_grad():
        logprobs_NL, _ = output_logprobs(policy.model, padded)
    gap_NL = (logprobs_NL - padded.rollout_logprobs_NL).abs() * padded.mask_NL
    return float(gap_NL.sum() / padded.mask_NL.sum()), float(gap_NL.max())


@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"temperature": 0.7},
        {"temperature": 1.3, "top_p": 0.8},
        {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05},
    ],
    ids=str,
)
def test_generator_and_learner_agree_on_every_log_probability(policy, sampling):
    _, largest = mean_and_largest_gap(policy, SamplingConfig(max_new_tokens=12, **sampling))
    assert largest < 1e-4


def test_in_bfloat16_they_agree_to_the_stated_tolerance(policy):
    half = replace(policy, model=copy.deepcopy(policy.model).bfloat16())
    sampling = SamplingConfig(temperature=0.8, top_p=0.95, max_new_tokens=40)
    mean, largest = mean_and_largest_gap(half, sampling)
    assert 0 < mean < 0.02 and largest < 0.25


def test_an_update_reports_the_loss_s_own_figures_as_means_over_its_tokens(policy):
    rows = rows_of(policy, advantages=(-1.0,) * 5)
    assert learner(policy).update(rows, 0.5).figures == {}
    # Every ratio is 1 in the first minibatch; in the next ones about half of them are above it.
    loss = LossConfig(policy="ppo", dual_clip=1.001, kl_coefficient=0)
    one, several = (learner(policy, loss, minibatches=count).update(rows, 0.5) for count in (1, 3))
    assert one.figures == {"dual_clipped": 0.0}
    assert 0 < several.figures["dual_clipped"] < 1
    split = learner(policy, loss, minibatches=3, micro_batch_tokens=64).update(rows, 0.5)
    assert split.figures == pytest.approx(several.figures)


def test_rows_of_several_temperatures_learn_each_at_its_own(policy):
    rows = []
    for temperature in (0.6, 1.0, 1.7):
        sampling = SamplingConfig(temperature=temperature, max_new_tokens=12)
        for g in generator(policy).generate(PROMPTS, sampling, 0):
            rows.append(TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, 1.0, 0, g.temperature))
    assert learner(policy).update(rows, 0.5).mismatch < 1e-5
    wrong = [replace(row, temperature=1.0) for row in rows]
    assert learner(policy).update(wrong, 0.5).mismatch > 0.1


def test_one_seed_gives_one_set_of_answers(policy):
    sampling = SamplingConfig(max_new_tokens=64)
    first, second, other = (
        [g.output_ids for g in generator(policy, seed).generate(PROMPTS, sampling, 0)]
        for seed in (4, 4, 5)
    )
    assert first == second != other


def test_an_answer_says_why_it_ended(policy):
    generations = generator(policy).generate(PROMPTS * 8, SamplingConfig(max_new_tokens=30), 3)
    for g in generations:
        ended = g.output_ids[-1] in policy.end_ids
        assert g.stop is (StopReason.END_OF_TEXT if ended else StopReason.MAX_TOKENS)
        assert ended or len(g.output_ids) == 30
        assert not set(g.output_ids[:-1]) & set(policy.end_ids)
        assert len(g.logprobs) == len(g.output_ids)
        assert g.policy_version == 3


def test_tokens_are_drawn_as_often_as_the_model_says(policy):
    draws, sampling = 20_000, SamplingConfig(max_new_tokens=1)
    generations = generator(policy).generate([PROMPTS[0]] * draws, sampling, 0)
    with torch.no_grad():
        logits_V = policy.model(torch.tensor([PROMPTS[0]])).logits[0, -1]
    expected_V = draws * logits_V.double().softmax(-1)
    drawn = torch.tensor([g.output_ids[0] for g in generations])
    counts_V = torch.bincount(drawn, minlength=len(expected_V))
    common_V = expected_V > 5
    squares = ((counts_V - expected_V) ** 2 / expected_V)[common_V].sum().item()
    degrees = int(common_V.sum()) - 1
    # Chi-square: its mean is `degrees`, its variance twice that; five deviations above never
    # happen.
    assert degrees > 20
    assert squares < degrees + 5 * (2 * degrees) ** 0.5


def first_tokens(policy, draws, **sampling):
    """(token ids drawn, their log-probs, the model's probabilities_V) for one prompt."""
    options = SamplingConfig(max_new_tokens=1, **sampling)
    generations = generator(policy).generate([PROMPTS[0]] * draws, options, 0)
    with torch.no_grad():
        logits_V = policy.model(torch.tensor([PROMPTS[0]])).logits[0, -1]
    probabilities_V = torch.softmax(logits_V / options.temperature, -1)
    return (
        [g.output_ids[0] for g in generations],
        [g.logprobs[0] for g in generations],
        (probabilities_V),
    )


@pytest.mark.parametrize(
    "sampling",
    [
        {"top_p": 0.3},
        {"top_k": 7},
        {"min_p": 0.2, "temperature": 1.5},
        {"min_p": 0.05, "top_k": 12, "top_p": 0.8},
    ],
    ids=str,
)
def test_sampling_filters_tokens_and_reports_full_log_probabilities(policy, sampling):
    tokens, logprobs, probabilities_V = first_tokens(policy, 4000, **sampling)
    ordered, ids = probabilities_V.sort(descending=True)
    count = int((ordered >= sampling.get("min_p", 0) * ordered[0]).sum())
    count = min(count, sampling.get("top_k", count))
    shares = ordered[:count] / ordered[:count].sum()
    count = int((shares.cumsum(0) < sampling.get("top_p", 1.0) - 1e-6).sum()) + 1
    count = min(count, len(shares))
    allowed = {int(token): float(p) for token, p in zip(ids[:count], ordered, strict=False)}
    assert 1 < count < len(ids) / 4
    assert set(tokens) == set(allowed)  # 4000 draws hit the rarest of so few
    for token, logprob in zip(tokens, logprobs, strict=True):
        assert logprob == pytest.approx(math.log(allowed[token]), abs=1e-4)
    for token, probability in allowed.items():
        share = probability / sum(allowed.values())
        error = (share * (1 - share) / len(tokens)) ** 0.5
        assert abs(tokens.count(token) / len(tokens) - share) < 5 * error


@pytest.mark.parametrize("policy_loss", ["cispo", "gspo", "ppo"])
def test_an_update_does_not_depend_on_the_micro_batches(policy, policy_loss):
    rows = rows_of(policy)
    whole, split = (
        learner(policy, LossConfig(policy=policy_loss), micro_batch_tokens=limit)
        for limit in (100_000, 60)
    )
    first, second = whole.update(rows, 0.5), split.update(rows, 0.5)
    assert first.loss == pytest.approx(second.loss, abs=1e-6)
    assert first.gradient_norm == pytest.approx(second.gradient_norm, rel=1e-4)
    # The gradients, not the weights: Adam makes a whole step from a gradient that is only rounding.
    for a, b in zip(
        whole.weights.model.parameters(), split.weights.model.parameters(), strict=True
    ):
        assert torch.allclose(a.grad, b.grad, rtol=1e-3, atol=1e-5 * first.gradient_norm)


def test_learning_makes_good_answers_likelier_and_bad_ones_rarer(policy):
    rows = rows_of(policy, advantages=(2.0, -2.0, 2.0, -2.0, 2.0))
    student = learner(policy)
    before = mean_logprobs(student.weights.model, policy, rows)
    student.update(rows, 0.5)
    change = mean_logprobs(student.weights.model, policy, rows) - before
    signs = torch.tensor([row.advantage for row in rows]).sign()
    assert (change * signs).sum() > 0
    assert change[signs > 0].mean() > change[signs < 0].mean()


def test_the_reference_stays_and_the_divergence_grows(policy):
    rows = rows_of(policy)
    student = learner(policy)
    start = [p.clone() for p in policy.model.parameters()]
    first = student.update(rows, 0.5)
    second = student.update(rows, 0.5)
    assert first.kl == pytest.approx(0.0, abs=1e-6)
    assert second.kl > 0
    with student.weights.starting() as reference:
        assert all(torch.equal(a, b) for a, b in zip(start, reference.parameters(), strict=True))


def test_stale_rows_are_left_out_and_counted(policy):
    rows = rows_of(policy)
    student = learner(policy, max_staleness=1)
    student.version = 2
    stats = student.update(rows, 0.5)
    assert (stats.stale_nodes, stats.nodes, stats.version) == (len(rows), 0, 2)


def test_leftovers_of_a_limited_batch_age_until_they_are_dropped(policy):
    rows = rows_of(policy)
    buffer = AgentBuffer(batch_nodes=1, max_batch_nodes=1)
    for row in rows:
        buffer.add_tree([row])
    student = learner(policy, max_staleness=2)
    results = [student.update(buffer.take(), 0.5) for _ in rows]
    assert [stats.lag for stats in results] == [0, 1, 2, 0, 0]
    assert [stats.nodes for stats in results] == [1, 1, 1, 0, 0]
    assert [stats.stale_nodes for stats in results] == [0, 0, 0, 1, 1]
    assert [stats.version for stats in results] == [1, 2, 3, 3, 3]


def test_an_entropy_bonus_flattens_the_distribution(policy):
    rows = rows_of(policy, advantages=(0.0,) * 5)
    losses = [LossConfig(kl_coefficient=0.0, entropy_coefficient=c) for c in (0.0, 1.0)]
    plain, rewarded = (learner(policy, loss) for loss in losses)
    before = plain.update(rows, 0.5)
    assert before.gradient_norm == 0
    first = rewarded.update(rows, 0.5)
    assert first.loss == pytest.approx(-first.entropy, rel=1e-5)
    assert rewarded.update(rows, 0.5).entropy > plain.update(rows, 0.5).entropy


def test_several_minibatches_take_several_steps_from_one_old_policy(policy):
    rows = rows_of(policy)
    student = learner(policy, minibatches=2)
    stats = student.update(rows, 0.5)
    assert stats.version == 1
    # Old log-probs are those of the generator's weights, so the mismatch is rounding only.
    assert stats.mismatch < 1e-4
    assert stats.nodes == len(rows)


@pytest.mark.parametrize(
    ("name", "low", "high"), [("gspo", 3e-4, 4e-4), ("ppo", 0.2, 0.28), ("cispo", 0.2, 0.28)]
)
def test_ratios_leave_one_and_are_clipped_only_with_several_minibatches(policy, name, low, high):
    loss = LossConfig(policy=name, clip_low=low, clip_high=high, kl_coefficient=0.0)
    assert loss.clips
    one, five = (learner(policy, loss, minibatches=n) for n in (1, 5))
    rows = rows_of(policy)
    for _ in range(3):
        assert one.update(rows, 0.5).clip_fraction == 0
    clipped = five.update(rows, 0.5).clip_fraction
    assert 0 < clipped <= 0.8, "the first of five minibatches has ratios of 1"


def test_a_gradient_that_is_not_finite_changes_nothing(policy):
    rows = rows_of(policy, advantages=(float("nan"), 1.0, 1.0, 1.0, 1.0))
    student = learner(policy)
    before = [p.clone() for p in student.weights.model.parameters()]
    with pytest.raises(FloatingPointError, match="gradient norm"):
        student.update(rows, 0.5)
    assert all(torch.equal(a, b) for a, b in zip(before, student.weights.trained(), strict=True))


def test_a_learner_goes_on_exactly_where_its_state_was_taken(policy):
    rows = rows_of(policy)
    one = learner(policy)
    one.update(rows, 0.2)
    two = learner(policy)
    two.weights.model.load_state_dict(one.weights.model.state_dict())
    two.load_state(copy.deepcopy(one.state()))
    one.update(rows, 0.4)
    two.update(rows, 0.4)
    for a, b in zip(one.weights.model.parameters(), two.weights.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_demonstrations_are_never_stale_and_are_no_nodes(policy):
    rows = rows_of(policy)
    student = learner(policy, LossConfig(policy="mixed_policy"), max_staleness=1)
    shown = [replace(row, node=DEMONSTRATION) for row in rows[:2]]
    student.version = 5
    fresh = [replace(row, policy_version=4) for row in rows[2:4]]
    stats = student.update([*fresh, *shown, rows[4]], 0.5)
    assert (stats.nodes, stats.stale_nodes, stats.lag) == (2, 1, 1.0)
    assert len(stats.tokens) == 2, "token statistics are of nodes"
    assert stats.row_tokens == sum(len(r.prompt_ids) + len(r.output_ids) - 1
                                   for r in [*fresh, *shown])  # fmt: skip
    assert 0 < stats.figures["shown_probability"] < 1


GROUP = OptimizerGroup("imitation", OptimizerConfig(learning_rate=2e-3, schedule="constant",
                                                    warmup_fraction=0))  # fmt: skip


def moved_by(student, rows, objective):
    before = [weight.detach().clone() for weight in student.weights.trained()]
    stats = student.update(rows, 0.5, objective)
    after = student.weights.trained()
    return stats.learning_rate, max(
        float((a.detach() - b).abs().max()) for a, b in zip(after, before, strict=True)
    )


def test_an_update_may_have_an_optimizer_of_its_own(policy):
    rows, student = rows_of(policy), learner(policy)
    own = moved_by(student, rows, Objective())
    group = moved_by(student, rows, Objective(optimizer=GROUP))
    # The first step of an Adam moves every weight by its rate.
    assert own == (1e-2, pytest.approx(1e-2, rel=1e-3))
    assert group == (2e-3, pytest.approx(2e-3, rel=1e-3))
    steps = [
        {int(s["step"]) for s in one["state"].values()}
        for one in (student.state()["optimizer"], student.state()["groups"]["imitation"])
    ]
    assert steps == [{1}, {1}], "each has moments of its own"
    assert "groups" not in learner(policy).state()


@pytest.mark.parametrize("between", [0, 1])
def test_a_learner_goes_on_with_the_optimizers_of_all_groups(policy, between):
    """`between` is the number of saves without an update of the group."""
    rows, imitate = rows_of(policy), Objective(optimizer=GROUP)
    one = learner(policy)
    for objective in (imitate, Objective(), imitate):
        one.update(rows, 0.2, objective)
    state = copy.deepcopy(one.state())
    for _ in range(between):
        other = learner(policy)
        other.load_state(state)
        state = copy.deepcopy(other.state())
    two = learner(policy)
    two.weights.model.load_state_dict(one.weights.model.state_dict())
    two.load_state(state)
    for objective in (Objective(), imitate):
        one.update(rows, 0.4, objective)
        two.update(rows, 0.4, objective)
    for a, b in zip(one.weights.model.parameters(), two.weights.model.parameters(), strict=True):
        assert torch.equal(a, b)


def factors_of(schedule, **options):
    optimizer = OptimizerConfig(schedule=schedule, warmup_fraction=0.1, **options)
    return [schedule_factor(optimizer, share / 100) for share in range(101)]


def test_the_learning_rate_warms_up_and_falls_as_its_schedule_says():
    constant, cosine, linear = map(factors_of, ("constant", "cosine", "linear"))
    for factors in (constant, cosine, linear):
        assert factors[0] < factors[5] < factors[10] == pytest.approx(1.0)
        assert factors[10:] == sorted(factors[10:], reverse=True)
    assert constant[100] == 1.0
    assert cosine[100] == linear[100] == pytest.approx(0.1)
    assert [cosine[55], linear[55]] == pytest.approx([0.55] * 2)  # half the steps, half the rate
    assert [linear[n] - linear[n + 1] for n in range(10, 100)] == pytest.approx([0.01] * 90)
    assert cosine[20] > linear[20] and cosine[90] < linear[90]
    assert factors_of("linear", final_fraction=0.0)[100] == 0.0


@pytest.mark.parametrize("grouped", [length_buckets, prompt_groups])
def test_buckets_hold_every_row_once_and_stay_under_the_limit(grouped):
    lengths = [3, 500, 12, 7, 40, 41, 39, 200, 1]
    groups = grouped(lengths, 128)
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or max(lengths[r] for r in group) * len(group) <= 128


def test_few_rows_are_put_with_longer_ones_and_many_are_not():
    assert prompt_groups([90, 40, 35], 4096) == [[0, 1, 2]]
    assert len(length_buckets([90, 40, 35], 4096)) == 2
    many = [90] * 8 + [40] * 8
    assert len(prompt_groups(many, 4096)) == 2, f"400 tokens of padding, for {PASS_TOKENS}"


def mean_logprobs(model, policy, rows):
    padded = pad_rows(rows, policy.pad_id, "cpu")
    with torch.no_grad():
        logprobs_NL, _ = output_logprobs(model, padded)
    return (logprobs_NL * padded.mask_NL).sum(1) / padded.mask_NL.sum(1)
