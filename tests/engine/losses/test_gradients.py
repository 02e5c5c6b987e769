"""Tests of every combination of losses against finite differences in a small model's weights.

In float64, from token ids to the loss: the forward pass, the log-probs, the entropy, the policy
loss with its rollout correction, the KL to the reference. Weights under a stopped gradient do not
move with the others: the objectives of losses that stop one are written out in `held`.
"""

import random
from dataclasses import replace

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from engine.config.importance import Level, WeightMode
from engine.config.loss import Aggregation, KlEstimator, LossConfig
from engine.losses import POLICY_LOSSES
from engine.losses.importance import importance_weights
from engine.losses.terms import Rows
from engine.losses.total import count_units, total_loss
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.rows import TrainingRow
from tests.engine.losses.batches import made_columns, made_heads, make_batch
from tests.engine.losses.held import OBJECTIVES

VOCABULARY, TEMPERATURE, STEP = 11, 0.9, 1e-5


class SmallProblem:
    """A model, six rows, and log-probs of the other policies near the model's own."""

    def __init__(self):
        torch.manual_seed(0)
        # GPT-2, because Llama's norms round to float32 whatever the dtype of the weights.
        config = GPT2Config(
            vocab_size=VOCABULARY, n_positions=16, n_embd=8, n_layer=1, n_head=2,
            initializer_range=0.5, bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        self.model = GPT2LMHeadModel(config).to(torch.float64).eval()
        draw = random.Random(1)
        rows = [
            TrainingRow(
                [draw.randrange(VOCABULARY) for _ in range(draw.randint(1, 4))],
                [draw.randrange(VOCABULARY) for _ in range(length)],
                [0.0] * length,
                draw.gauss(0, 1),
                0,
                TEMPERATURE,
            )
            for length in (5, 1, 3, 4, 2, 5)
        ]
        self.padded = pad_rows(rows, 0, "cpu")
        self.start = self.forward()[0].detach()
        old = self.start + 0.2 * torch.randn_like(self.start)
        self.rows = Rows(
            old_logprobs_NL=old,
            rollout_logprobs_NL=old + 0.5 * torch.randn_like(old),
            advantages_NL=self.padded.advantages_NL.double(),
            mask_NL=self.padded.mask_NL,
            reference_logprobs_NL=self.start + 0.3 * torch.randn_like(old),
            old_entropies_NL=torch.rand_like(old),
            columns=made_columns(len(rows)),
            heads=made_heads(self.padded.mask_NL),
        )
        self.directions = [
            [torch.randn_like(weight) for weight in self.model.parameters()] for _ in range(2)
        ]
        self.moved = [
            [self.forward_moved(d, step) for step in (STEP, -STEP)] for d in self.directions
        ]

    def forward(self):
        """(logprobs_NL, entropy_NL) of the model."""
        return output_logprobs(self.model, self.padded, entropy_gradient=True)

    @torch.no_grad()
    def forward_moved(self, direction, step):
        """The same with all weights moved along a direction."""
        weights = list(self.model.parameters())
        before = [weight.clone() for weight in weights]
        for weight, move in zip(weights, direction, strict=True):
            weight.add_(step * move)
        outputs = self.forward()
        for weight, start in zip(weights, before, strict=True):
            weight.copy_(start)
        return outputs

    def loss(self, settings, outputs, rows=None):
        rows = rows or self.rows
        if "demonstrations" in settings.needs:
            shown = torch.tensor([False, True, False, False, True, False])
            rows = replace(rows, demonstrations_N=shown)
        units = count_units([rows.mask_NL], settings, demonstrations=[rows.demonstrations_N])
        return total_loss(outputs[0], rows, units, settings, outputs[1])

    def objective(self, settings, outputs):
        """The scalar whose gradient is tested."""
        if settings.policy in OBJECTIVES:
            return OBJECTIVES[settings.policy](self, settings, outputs)
        return self.loss(settings, outputs).loss.item()

    def without_advantages(self):
        return replace(self.rows, advantages_NL=0 * self.start)

    def corrections(self, settings):
        """Weights of the rollout correction, which every loss holds constant."""
        return importance_weights(
            self.rows.old_logprobs_NL, self.rows.rollout_logprobs_NL, self.rows.mask_NL,
            settings.importance_level, settings.importance_mode, settings.importance_threshold,
        )  # fmt: skip


@pytest.fixture(scope="module")
def problem():
    return SmallProblem()


@pytest.mark.parametrize("entropy", [0.0, 0.3])
@pytest.mark.parametrize("mode", list(WeightMode))
@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("estimator", list(KlEstimator))
@pytest.mark.parametrize("policy", sorted(POLICY_LOSSES))
def test_the_gradient_of_the_weights_is_that_of_the_loss(
    problem, policy, estimator, level, mode, entropy
):
    settings = LossConfig(
        policy=policy, clip_low=0.1, clip_high=0.15, kl_estimator=estimator, kl_coefficient=0.5,
        importance_level=level, importance_mode=mode, importance_threshold=1.3,
        entropy_coefficient=entropy, mixed_policy={"clip": True},
    )  # fmt: skip
    result = problem.loss(settings, problem.forward())
    if settings.clips_ratios or getattr(POLICY_LOSSES[policy], "DUAL_CLIPS", False):
        assert 0 < result.clip_fraction < 1, "the batch must hold clipped and other tokens"
    gradients = torch.autograd.grad(result.loss, list(problem.model.parameters()))
    for direction, (ahead, behind) in zip(problem.directions, problem.moved, strict=True):
        slope = sum((g * d).sum().item() for g, d in zip(gradients, direction, strict=True))
        rise = problem.objective(settings, ahead) - problem.objective(settings, behind)
        assert slope == pytest.approx(rise / (2 * STEP), rel=1e-5, abs=2e-6)


@pytest.mark.parametrize("dual_clip", [None, 1.05])
@pytest.mark.parametrize("aggregation", list(Aggregation))
@pytest.mark.parametrize("policy", ["gspo", "ppo"])
def test_every_aggregation_and_dual_clip_agree_with_finite_differences(
    policy, aggregation, dual_clip
):
    logprobs, rows = make_batch(seed=1)
    settings = LossConfig(
        policy=policy, clip_low=0.2, clip_high=0.28, aggregation=aggregation, dual_clip=dual_clip
    )
    units = count_units([rows.mask_NL], settings)

    def loss(values):
        return total_loss(values, rows, units, settings).loss

    plain = settings.model_copy(update={"dual_clip": None})
    assert (loss(logprobs) == total_loss(logprobs, rows, units, plain).loss) == (not dual_clip)
    assert torch.autograd.gradcheck(loss, logprobs, eps=1e-7, atol=1e-6)
