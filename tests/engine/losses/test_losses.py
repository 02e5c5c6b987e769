import math
from dataclasses import replace

import pytest
import torch

from engine.config.importance import Level, WeightMode
from engine.config.loss import Aggregation, KlEstimator, LossConfig
from engine.losses import POLICY_LOSSES, policy_loss, policy_units
from engine.losses.importance import importance_weights
from engine.losses.kl import kl_tokens
from engine.losses.terms import LossContext, Rows
from engine.losses.total import count_units, total_loss
from tests.engine.losses.batches import changed, make_batch, part

WIDE = {"clip_low": 0.2, "clip_high": 0.28}
LOSSES = sorted(POLICY_LOSSES)


def is_of_advantages(policy):
    """Whether a loss weighs log-probabilities by advantages alone, without a head or a comparison
    of rows."""
    source = POLICY_LOSSES.source(policy)
    return not hasattr(source, "over_minibatch") and not hasattr(source, "HEADS")


def config(policy="gspo", **settings):
    return LossConfig(policy=policy, **{**WIDE, "kl_coefficient": 0.1, **settings})


def whole(logprobs, rows, settings):
    return total_loss(logprobs, rows, count_units([rows.mask_NL], settings), settings)


def sums(logprobs, old, advantages, mask, weights, settings):
    rows = Rows(old, old, advantages, mask)
    return policy_loss(LossContext(**vars(rows), logprobs_NL=logprobs, config=settings), weights)


def gradient(loss, logprobs):
    return torch.autograd.grad(loss, logprobs)[0]


@pytest.mark.parametrize("estimator", list(KlEstimator))
def test_kl_gradients_agree_with_finite_differences(estimator):
    logprobs, rows = make_batch(seed=2)
    reference, mask = rows.reference_logprobs_NL, rows.mask_NL
    assert torch.autograd.gradcheck(
        lambda values: kl_tokens(values, reference, mask, estimator), logprobs
    )


@pytest.mark.parametrize("policy", LOSSES)
@pytest.mark.parametrize("aggregation", [None, *Aggregation])
def test_a_batch_is_the_same_however_it_is_split_padded_and_ordered(policy, aggregation):
    settings = config(policy, aggregation=aggregation)
    logprobs, rows = make_batch(rows=7, length=6, seed=3)
    expected = whole(logprobs, rows, settings)
    expected_gradient = gradient(expected.loss, logprobs)
    for pieces in ([[0, 1, 2, 3, 4, 5, 6]], [[6, 0], [2], [5, 4, 1, 3]], [[i] for i in range(7)]):
        parts = [part(rows, piece) for piece in pieces]
        units = count_units((p.mask_NL for p in parts), settings)
        shares = [
            total_loss(logprobs[piece], p, units, settings)
            for piece, p in zip(pieces, parts, strict=True)
        ]
        for name in ("loss", "policy", "kl", "clip_fraction", "mismatch"):
            result = sum(getattr(share, name) for share in shares)
            assert result.item() == pytest.approx(getattr(expected, name).item(), abs=1e-12), name
        result = gradient(sum(share.loss for share in shares), logprobs)
        assert torch.allclose(result, expected_gradient, atol=1e-12)


@pytest.mark.parametrize("policy", LOSSES)
@pytest.mark.parametrize("junk", [math.nan, math.inf, -math.inf, 1e9])
def test_padding_may_hold_anything(policy, junk):
    settings = config(policy)
    logprobs, rows = make_batch(seed=4)
    expected = whole(logprobs, rows, settings)
    hidden = rows.mask_NL == 0
    assert hidden.any()

    def spoil(values):
        return torch.where(hidden, junk, values)

    spoiled = spoil(logprobs.detach()).requires_grad_()
    dirty = changed(rows, lambda name, v: v if name == "mask_NL" or v.ndim == 1 else spoil(v))
    result = whole(spoiled, dirty, settings)
    assert result.loss.item() == pytest.approx(expected.loss.item())
    assert result.mismatch.item() == pytest.approx(expected.mismatch.item())
    assert torch.allclose(gradient(result.loss, spoiled), gradient(expected.loss, logprobs))


@pytest.mark.parametrize("policy", LOSSES)
def test_extreme_ratios_keep_loss_and_gradient_finite(policy):
    for shift in (-500.0, 500.0):
        logprobs, rows = make_batch(seed=5)
        far = (logprobs.detach() + shift).to(torch.float32).requires_grad_()
        rows = changed(rows, lambda name, values: values.to(torch.float32))
        rows = replace(rows, rollout_logprobs_NL=rows.rollout_logprobs_NL - shift)
        result = whole(far, rows, config(policy))
        assert math.isfinite(result.loss.item())
        assert torch.isfinite(gradient(result.loss, far)).all()


@pytest.mark.parametrize("policy", [one for one in LOSSES if is_of_advantages(one)])
def test_on_policy_the_gradient_is_that_of_reinforce(policy):
    """At ratio 1 nothing is clipped: the gradient of each token is -A over the denominator. Rows
    that an advantage marks for the loss are no others here."""
    logprobs, rows = make_batch(seed=6, spread=0.0)
    rows = replace(rows, columns={name: 0 * one for name, one in rows.columns.items()})
    settings = config(policy, kl_coefficient=0.0)
    result = whole(logprobs, rows, settings)
    sequences, tokens_N = len(rows.mask_NL), rows.mask_NL.sum(-1, keepdim=True)
    divisors = {
        Aggregation.TOKEN_MEAN: tokens_N.sum(),
        Aggregation.SEQUENCE_MEAN: tokens_N * sequences,
        Aggregation.SEQUENCE_SUM: sequences * settings.aggregation_tokens,
    }
    share = rows.mask_NL / divisors[POLICY_LOSSES[policy].AGGREGATION]
    assert torch.allclose(gradient(result.loss, logprobs), -rows.advantages_NL * share)
    assert result.clip_fraction == 0


def test_a_clipped_gspo_sequence_gives_no_gradient_at_all():
    logprobs = torch.tensor([[0.5, -0.1], [0.0, 0.01]], dtype=torch.float64, requires_grad=True)
    old, ones = torch.zeros(2, 2, dtype=torch.float64), torch.ones(2, 2, dtype=torch.float64)
    terms = sums(logprobs, old, ones, ones, ones, config("gspo", clip_high=0.1))
    result = gradient(terms.loss_sum, logprobs)
    assert result[0].tolist() == [0, 0] and (result[1] < 0).all()
    assert terms.clipped_sum == 1


def test_units_are_sequences_for_gspo_and_tokens_for_ppo_unless_it_is_said():
    mask = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert policy_units(mask, config("gspo")) == 2
    assert policy_units(mask, config("ppo")) == policy_units(mask, config("cispo")) == 3
    assert policy_units(mask, config("ppo", aggregation="sequence_mean")) == 2
    assert policy_units(mask, config("gspo", aggregation="token_mean")) == 3


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [("token_mean", 16 / 4), ("sequence_mean", (2 + 10) / 2), ("sequence_sum", 16 / 2 / 8)],
)
def test_each_aggregation_weighs_tokens_as_its_formula_says(aggregation, expected):
    """Losses 1, 2, 3 of one answer and 10 of another, at ratio 1."""
    advantages = -torch.tensor([[1.0, 2.0, 3.0], [10.0, 99.0, 99.0]])
    mask, ones = torch.tensor([[1, 1, 1], [1, 0, 0]]), torch.ones(2, 3)
    settings = config("ppo", aggregation=aggregation, aggregation_tokens=8)
    terms = sums(0 * ones, 0 * ones, advantages, mask, ones, settings)
    assert terms.loss_sum.item() / policy_units(mask, settings) == pytest.approx(expected)


def test_the_clipped_share_is_a_share_under_any_mean():
    logprobs, rows = make_batch(seed=1)
    by_mean, by_sum = (
        whole(logprobs, rows, config("ppo", aggregation=kind)).clip_fraction
        for kind in ("sequence_mean", "sequence_sum")
    )
    assert 0 < by_mean == by_sum < 1


def at_ratio(ratio, advantage, policy="ppo", **settings):
    """(loss, its gradient, clipped) of one token with the given ratio."""
    logprob = torch.tensor([[math.log(ratio)]], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, 1, dtype=torch.float64)
    terms = sums(logprob, 0 * one, advantage * one, one, one, config(policy, **settings))
    return terms.loss_sum.item(), gradient(terms.loss_sum, logprob).item(), terms.clipped_sum.item()


def test_clip_higher_bounds_good_tokens_wider_than_bad_ones():
    settings = {"clip_low": 0.2, "clip_high": 0.28}
    assert at_ratio(1.25, 1.0, **settings) == pytest.approx((-1.25, -1.25, 0))
    assert at_ratio(1.30, 1.0, **settings) == pytest.approx((-1.28, 0, 1))
    assert at_ratio(0.79, -1.0, **settings) == pytest.approx((0.8, 0, 1))
    assert at_ratio(0.79, 1.0, **settings) == pytest.approx((-0.79, -0.79, 0))


@pytest.mark.parametrize("policy", ["gspo", "ppo"])
def test_dual_clip_bounds_what_a_bad_token_that_became_likelier_weighs(policy):
    assert at_ratio(5.0, -2.0, policy) == pytest.approx((10.0, 10.0, 0))
    assert at_ratio(5.0, -2.0, policy, dual_clip=3.0) == pytest.approx((6.0, 0, 1))
    assert at_ratio(2.9, -2.0, policy, dual_clip=3.0) == pytest.approx((5.8, 5.8, 0))
    assert at_ratio(5.0, 2.0, policy, dual_clip=3.0) == at_ratio(5.0, 2.0, policy)


def test_cispo_bounds_the_weight_and_keeps_the_gradient_of_every_token():
    settings = {"policy": "cispo", "clip_low": 0.2, "clip_high": 0.28}
    for ratio, weight, clipped in ((1.1, 1.1, 0), (5.0, 1.28, 1), (0.1, 0.8, 1)):
        for advantage in (2.0, -2.0):
            loss = -weight * advantage * math.log(ratio)
            result = at_ratio(ratio, advantage, **settings)
            assert result == pytest.approx((loss, -weight * advantage, clipped))
    assert at_ratio(0.1, 2.0, policy="cispo", clip_low=1.0)[1] == pytest.approx(-0.2)


def test_a_vetoed_answer_gives_nothing_and_the_others_give_the_same():
    logprobs, rows = make_batch(seed=10, spread=1.0)
    ratios = (rows.old_logprobs_NL - rows.rollout_logprobs_NL).exp()
    lowest_N = torch.where(rows.mask_NL == 1, ratios, math.inf).amin(-1)
    veto = float(lowest_N.min()) * 1.001
    assert (lowest_N < veto).sum() == 1
    full = whole(logprobs, rows, config("ppo", kl_coefficient=0.0))
    vetoed = whole(logprobs, rows, config("ppo", kl_coefficient=0.0, importance_veto=veto))
    expected = gradient(full.loss, logprobs) * (lowest_N >= veto)[:, None]
    assert torch.equal(gradient(vetoed.loss, logprobs), expected)


def test_without_correction_the_generator_does_not_matter():
    logprobs, rows = make_batch(seed=11)
    settings = config(importance_correction=False)
    other = replace(rows, rollout_logprobs_NL=rows.rollout_logprobs_NL - 1.0)
    on_policy = replace(rows, rollout_logprobs_NL=rows.old_logprobs_NL)
    result = whole(logprobs, rows, settings).loss
    assert (
        result == whole(logprobs, other, settings).loss == whole(logprobs, on_policy, config()).loss
    )
    assert result != whole(logprobs, rows, config()).loss


def test_weights_carry_no_gradient_and_count_once():
    logprobs, rows = make_batch(seed=7)
    old = rows.old_logprobs_NL.clone().requires_grad_()
    weights = importance_weights(old, rows.rollout_logprobs_NL, rows.mask_NL, threshold=2.0)
    assert not weights.requires_grad
    expected = (rows.old_logprobs_NL - rows.rollout_logprobs_NL).exp().clamp(max=2.0)
    assert torch.allclose(weights[rows.mask_NL == 1], expected[rows.mask_NL == 1])
    plain = sums(
        logprobs, rows.old_logprobs_NL, rows.advantages_NL, rows.mask_NL,
        torch.full_like(weights, 0.5), config("ppo"),
    )  # fmt: skip
    full = sums(
        logprobs, rows.old_logprobs_NL, rows.advantages_NL, rows.mask_NL,
        torch.ones_like(weights), config("ppo"),
    )  # fmt: skip
    assert plain.loss_sum.item() == pytest.approx(full.loss_sum.item() / 2)


def test_weights_mask_truncate_and_veto_at_every_level():
    old = torch.tensor([[1.0, -0.2, 9.0], [-2.0, 0.0, 0.0]], dtype=torch.float64)
    rollout, mask = torch.zeros_like(old), torch.tensor([[1, 1, 0], [1, 1, 1]])

    def weights(level, mode, veto=None):
        result = importance_weights(old, rollout, mask, level, mode, 2.0, veto)
        return [round(value, 4) for value in result[:, 0].tolist()]

    e = math.exp
    assert weights(Level.TOKEN, WeightMode.TRUNCATE) == [2.0, round(e(-2), 4)]
    assert weights(Level.TOKEN, WeightMode.MASK) == [0.0, 0.0]
    assert weights(Level.SEQUENCE, WeightMode.TRUNCATE) == [2.0, round(e(-2), 4)]
    assert weights(Level.GEOMETRIC, WeightMode.TRUNCATE) == [round(e(0.4), 4), round(e(-2 / 3), 4)]
    assert weights(Level.GEOMETRIC, WeightMode.MASK) == [round(e(0.4), 4), round(e(-2 / 3), 4)]
    assert weights(Level.GEOMETRIC, WeightMode.MASK, veto=0.2) == [round(e(0.4), 4), 0.0]


def test_k3_is_never_negative_and_all_estimators_stay_in_their_bounds():
    logprobs, rows = make_batch(rows=50, seed=8, spread=5.0)
    for estimator in KlEstimator:
        values = kl_tokens(logprobs, rows.reference_logprobs_NL, rows.mask_NL, estimator)
        assert values.abs().max() <= 10.0
        assert (values[rows.mask_NL == 0] == 0).all()
        if estimator is not KlEstimator.K1:
            assert (values >= 0).all()


def test_missing_parts_are_refused():
    logprobs, rows = make_batch(seed=9)
    bare = replace(rows, reference_logprobs_NL=None)
    with pytest.raises(ValueError, match="kl_coefficient"):
        whole(logprobs, bare, config())
    assert whole(logprobs, bare, config(kl_coefficient=0.0)).kl == 0
    with pytest.raises(ValueError, match="entropy_coefficient"):
        whole(logprobs, rows, config(entropy_coefficient=0.1))
    with pytest.raises(ValueError, match="no token to learn from"):
        count_units([torch.zeros(2, 3)], config())
