"""Tests that weights that run in bfloat16 learn at the learning rates of the papers."""

import copy

import pytest
import torch

from engine.config.agents import AgentConfig, OptimizerConfig
from engine.config.loss import LossConfig
from engine.config.training import TrainingConfig
from engine.policy.learner.learner import Learner
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.load import load_policy
from engine.policy.models.weights import FullWeights
from tests.helpers.policies import tiny_policy

RATE, STEPS = 1e-6, 12
ROWS = [
    TrainingRow([5, 6, 7], [20, 21, 22], [-5.0] * 3, 1.0, 0),
    TrainingRow([9] * 12, [30, 31], [-5.0] * 2, -1.0, 0),
]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return load_policy(str(tiny_policy(tmp_path_factory.mktemp("models") / "tiny")))


def learner(policy, dtype, **training):
    options = OptimizerConfig(learning_rate=RATE, schedule="constant", warmup_fraction=0)
    agent = AgentConfig(name="tiny", model="-", optimizer=options)
    weights = FullWeights(copy.deepcopy(policy.model).to(dtype), reload=lambda _: policy.model)
    loss = LossConfig(policy="ppo", clip_low=0.2, clip_high=0.2, kl_coefficient=0.0)
    return Learner(
        weights, policy.pad_id, agent, loss, TrainingConfig(max_staleness=99, **training)
    )


def test_small_updates_add_up_in_bfloat16(policy):
    student = learner(policy, torch.bfloat16)
    start = [weight.clone() for weight in student.precise.masters]
    for _ in range(STEPS):
        student.update(ROWS, 0.5)
    moved = [(a - b).abs() for a, b in zip(student.precise.masters, start, strict=True)]
    far = torch.cat([m.flatten() for m in moved])
    touched = far[far > 0]
    # Adam moves a weight by about its rate each step; a spacing of bfloat16 here is 1e-3.
    assert len(touched) > 0.3 * len(far)
    assert touched.median() > 0.3 * STEPS * RATE
    for run, master in zip(student.precise.run, student.precise.masters, strict=True):
        assert run.dtype is torch.bfloat16
        assert torch.equal(run, master.to(torch.bfloat16))
        assert run.grad is None


def test_a_bfloat16_learner_goes_on_from_its_state_bit_for_bit(policy):
    one, two = (learner(policy, torch.bfloat16) for _ in range(2))
    one.update(ROWS, 0.2)
    two.weights.model.load_state_dict(one.weights.model.state_dict())
    two.load_state(copy.deepcopy(one.state()))
    one.update(ROWS, 0.4)
    two.update(ROWS, 0.4)
    for a, b in zip(one.precise.masters, two.precise.masters, strict=True):
        assert torch.equal(a, b)


def test_micro_batches_add_up_in_float32(policy):
    whole, split = (learner(policy, torch.bfloat16, micro_batch_tokens=n) for n in (999, 16))
    first, second = (student.update(ROWS, 0.5) for student in (whole, split))
    assert first.gradient_norm == pytest.approx(second.gradient_norm, rel=0.02)
    assert all(weight.grad.dtype is torch.float32 for weight in split.precise.masters)


def test_float32_weights_are_their_own_masters(policy):
    student = learner(policy, torch.float32)
    assert all(a is b for a, b in zip(student.precise.run, student.precise.masters, strict=True))
    assert student.precise.state() == []
    with pytest.raises(ValueError):
        student.precise.load_state([torch.zeros(1)])
