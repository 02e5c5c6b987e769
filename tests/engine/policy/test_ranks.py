"""Tests that several ranks learn what one does: same gradient, same weights, same checkpoint."""

import os
import signal
from datetime import timedelta

import psutil
import pytest
import ray
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from engine.config.agents import AgentConfig, OptimizerConfig
from engine.config.compute import ComputeConfig
from engine.config.loss import Aggregation, LossConfig
from engine.config.schema import ConfigError
from engine.config.training import TrainingConfig
from engine.losses import POLICY_LOSSES
from engine.policy.host import PolicyHost
from engine.policy.learner.forward import inputs_of
from engine.policy.learner.learner import Learner
from engine.policy.learner.objective import DEFAULT, Objective, OptimizerGroup
from engine.policy.learner.rank_group import RankGroup, divide
from engine.policy.learner.ranks import RankError
from engine.policy.learner.sharded import ShardedWeights
from engine.policy.models.weights import FullWeights
from engine.preload.environment import runtime_environment
from tests.engine.policy.test_layout import gpt2, tree_rows, updated
from tests.helpers.policies import tiny_config, tiny_policy
from tests.helpers.waiting import eventually, patience

DEADLINE = 300
COMPARING = [name for name in sorted(POLICY_LOSSES) if LossConfig(policy=name).row_columns]
PLAIN = sorted({*POLICY_LOSSES} - {*COMPARING})
CASES = [(policy, kind) for policy in PLAIN for kind in (None, *Aggregation)]
CASES += [(policy, None) for policy in COMPARING]


@pytest.fixture(scope="module")
def cluster(ray_address):
    """A real Ray that this process has joined, and its address."""
    ray.init(address=ray_address, log_to_driver=False, logging_level="error")
    yield ray_address
    ray.shutdown()


def loss_of(policy, aggregation):
    return LossConfig(
        policy=policy, aggregation=aggregation, clip_low=0.2, clip_high=0.3, kl_coefficient=0.1,
        entropy_coefficient=0.05,
    )  # fmt: skip


def learn_together(rank, folder):
    """Runs in each of two plain processes: updates the same weights under every loss."""
    torch.set_num_threads(1)
    limit = timedelta(seconds=DEADLINE)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2, timeout=limit
    )
    mesh, results = init_device_mesh("cpu", (2,)), []
    weights = ShardedWeights(gpt2(), mesh, torch.float64, reference=True)
    # A step this small is no step: all losses start from the same weights.
    still = AgentConfig(name="tiny", model="-", optimizer={"learning_rate": 1e-30})
    for number, case in enumerate(CASES):
        again = number >= len(CASES) / 2  # the first half keeps all activations and logits
        training = TrainingConfig(micro_batch_tokens=250, recompute_activations=again)
        student = Learner(weights, 0, still, loss_of(*case), training, RankGroup(rank, 2))
        student.logits_at_once = 500 if again else 10**9
        stats = student.update(tree_rows(), 0.5)
        gradients = [p.grad.full_tensor() for p in weights.trained()]
        results.append((stats.loss, stats.gradient_norm, stats.row_tokens, gradients))
    results.append(moved(weights, RankGroup(rank, 2)))
    dist.destroy_process_group()
    return results


def moved(weights, rank_group=None):
    """(stats, weights) after three steps of a loss that compares the rows of all ranks."""
    agent = AgentConfig(name="tiny", model="-", optimizer={"learning_rate": 3e-3})
    training = TrainingConfig(micro_batch_tokens=250, minibatches=3)
    loss = LossConfig(policy="pacs", kl_coefficient=0.0)
    stats = Learner(weights, 0, agent, loss, training, rank_group).update(tree_rows(), 0.0)
    return stats, weights.full_state() if rank_group else weights.model.state_dict()


@pytest.mark.large
def test_two_ranks_have_the_gradient_of_one_under_every_loss(cluster, tmp_path):
    forked = runtime_environment(ComputeConfig())
    other = ray.remote(learn_together).options(runtime_env=forked).remote(1, tmp_path)
    result = learn_together(0, tmp_path)
    ray.get(other, timeout=DEADLINE * patience())
    stats, weights = result.pop()
    model = gpt2()
    expected, of_one = moved(FullWeights(model, reload=lambda directory: model))
    assert stats.policy_loss == pytest.approx(expected.policy_loss, abs=1e-9)
    for name, weight in of_one.items():
        assert (weights[name] - weight).abs().max() <= 1e-8, name
    for case, (loss, norm, tokens, gradients) in zip(CASES, result, strict=True):
        stats, expected = updated(gpt2(), loss_of(*case), "padded", 10_000, tree_rows(), 0.0)
        assert loss == pytest.approx(stats.loss, abs=1e-9), case
        assert norm == pytest.approx(stats.gradient_norm, rel=1e-9), case
        assert tokens == stats.row_tokens
        for a, b in zip(expected, gradients, strict=True):
            assert (a - b).abs().max() <= 1e-9, case


def test_rows_are_divided_by_tokens_and_siblings_stay_together():
    rows = tree_rows()
    for parts in (1, 2, 3, 50):
        divided = divide(rows, parts)
        assert sorted(map(id, rows)) == sorted(id(row) for part in divided for row in part)
        sizes = [sum(len(inputs_of(row)) for row in part) for part in divided]
        longest = max(len(inputs_of(row)) for row in rows)
        assert max(sizes) <= sum(sizes) / parts + longest
    prompts = [{tuple(row.prompt_ids[:30]) for row in part} for part in divide(rows, 2)]
    assert len(prompts[0] & prompts[1]) <= 1


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "tiny")


NAME = "agent-0"


def host_of(model, ranks, epsilon=1e-8, **compute):
    agent = tiny_config(model).agents[0].model_dump(mode="json") | {"learner_ranks": ranks}
    agent["optimizer"] |= {"epsilon": epsilon}
    run = tiny_config(
        agents=[agent], loss={"clip_low": 0.2, "clip_high": 0.2}, compute=compute,
        training={"minibatches": 2, "max_staleness": 20},
    )  # fmt: skip
    return PolicyHost([run.agents], run, seeds=[5])


def weights_of(host):
    return [p.detach().clone() for p in host.policies[NAME].weights.model.parameters()]


def close(one, other, tolerance=1e-5):
    return all(
        torch.allclose(a, b, rtol=0, atol=tolerance) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.large
def test_two_ranks_come_to_the_weights_of_one_and_either_goes_on_from_the_other(
    cluster, model, tmp_path
):
    one, two = host_of(model, 1), host_of(model, 2)
    start = weights_of(one)
    assert close(start, weights_of(two), 0.0)
    batches = [tree_rows(step) for step in range(4)] + [tree_rows(4)[:1]]  # a rank without a row
    for batch in batches:
        stats = [host.learn(NAME, batch, 0.5) for host in (one, two)]
        assert stats[1].loss == pytest.approx(stats[0].loss, abs=1e-5)
        assert stats[1].gradient_norm == pytest.approx(stats[0].gradient_norm, rel=1e-3)
        assert (stats[1].version, stats[1].nodes) == (stats[0].version, len(batch))
    assert close(weights_of(one), weights_of(two))
    assert not close(weights_of(one), start, 1e-3)

    for name, host in (("one", one), ("two", two)):
        host.end_step()
        host.save(tmp_path / name)
    again = host_of(model, 1)
    assert again.restore(tmp_path / "two") == []
    two.restore(tmp_path / "one")
    for host in (one, two, again):
        host.learn(NAME, tree_rows(7), 0.5)
        assert close(weights_of(host), weights_of(one))

    # Last, because it ends the ranks: one of them cannot do its part, and the other would wait for
    # it for an hour.
    group = two.policies[NAME]
    wrong = tree_rows(8)
    wrong[3].output_ids[0] = 10**6
    with pytest.raises(
        RankError, match=r"agents\.agent-0: rank [01] of 2 failed to learn: IndexEr"
    ):
        two.learn(NAME, wrong, 0.5)
    # Ray ends the processes asynchronously.
    eventually(lambda: not any(map(psutil.pid_exists, group.learner.processes)), "the ranks to end")


COARSE = 1e-4
"""Epsilon with which the first step of an Adam does not blow up the last bits of a gradient near 0:
the weights that it begins with are equal up to these."""


def group(name, rate):
    settings = OptimizerConfig(
        learning_rate=rate, schedule="constant", warmup_fraction=0.0, epsilon=COARSE
    )
    return Objective(optimizer=OptimizerGroup(name, settings))


def optimizers_in(folder):
    """(the agent's own, those of groups by name) of a checkpoint."""
    state = torch.load(folder / NAME / "trainer_state.pt")["learner"]
    return {"own": state["optimizer"], **state.get("groups", {})}


@pytest.mark.large
def test_two_ranks_step_the_optimizer_groups_of_one_and_either_goes_on_from_the_other(
    cluster, model, tmp_path
):
    imitate, replay = group("imitate", 2e-3), group("replay", 5e-4)
    hosts = one, two = host_of(model, 1, COARSE), host_of(model, 2, COARSE)

    def saved(name):
        for host, ranks in ((one, "one"), (two, "two")):
            host.end_step()
            host.save(tmp_path / name / ranks)
        return [optimizers_in(tmp_path / name / ranks) for ranks in ("one", "two")]

    def learned(students, step, objective):
        stats = [host.learn(NAME, tree_rows(step), 0.5, objective) for host in students]
        rate = objective.optimizer.settings.learning_rate if objective.optimizer else 1e-3
        assert {one.learning_rate for one in stats} == {rate}
        for other in students[1:]:
            assert close(weights_of(students[0]), weights_of(other)), (step, objective)

    for states in saved("start"):
        assert states.keys() == {"own"} and not states["own"]["state"], "saving is no step"
    for step, objective in enumerate((imitate, DEFAULT, imitate, replay, DEFAULT, imitate)):
        learned(hosts, step, objective)
    of_one, of_two = saved("later")
    assert of_one.keys() == of_two.keys() == {"own", "imitate", "replay"}
    for name, steps in (("own", 4), ("imitate", 6), ("replay", 2)):  # two minibatches each
        for number, expected in of_one[name]["state"].items():
            state = of_two[name]["state"][number]
            assert state["step"] == expected["step"] == steps
            assert close([state["exp_avg"]], [expected["exp_avg"]])

    # Groups are loaded at their first use, when an update before has left its gradients.
    again = host_of(model, 1, COARSE)
    again.restore(tmp_path / "later" / "two")
    two.restore(tmp_path / "later" / "one")
    for step, objective in enumerate((DEFAULT, replay, imitate)):
        learned((one, two, again), step + 9, objective)
    two.restore(tmp_path / "start" / "one")
    again.restore(tmp_path / "start" / "two")
    for step, objective in enumerate((DEFAULT, imitate)):
        learned((two, again), step + 20, objective)


def test_bfloat16_ranks_step_in_float32_and_a_killed_rank_is_reported(cluster, model, tmp_path):
    one, two = host_of(model, 1, dtype="bfloat16"), host_of(model, 2, dtype="bfloat16")
    for step in range(2):
        stats = [host.learn(NAME, tree_rows(step), 0.5) for host in (one, two)]
    assert stats[1].gradient_norm == pytest.approx(stats[0].gradient_norm, rel=0.1)
    for host, name in ((one, "one"), (two, "two")):
        assert all(weight.dtype == torch.bfloat16 for weight in weights_of(host))
        host.end_step()
        host.save(tmp_path / name)
    saved = [
        torch.load(tmp_path / n / NAME / "trainer_state.pt")["learner"] for n in ("one", "two")
    ]
    for a, b in zip(saved[0]["masters"], saved[1]["masters"], strict=True):
        assert a.dtype == b.dtype == torch.float32 and a.shape == b.shape
    again = host_of(model, 1, dtype="bfloat16")
    again.restore(tmp_path / "two")
    assert close(weights_of(again), weights_of(two), 0.0)

    os.kill(two.policies[NAME].learner.processes[1], signal.SIGKILL)
    with pytest.raises(RankError, match="rank 1 of 2 failed to learn: ActorDied"):
        two.learn(NAME, tree_rows(3), 0.5)


def test_ranks_that_report_nothing_within_the_grace_are_counted_with_the_setting(
    cluster, model, monkeypatch
):
    monkeypatch.setenv("GROVE_RANKS_GRACE_SECONDS", "0.25")
    host = host_of(model, 2)
    silent, killed = host.policies[NAME].learner.processes
    os.kill(silent, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    try:
        with pytest.raises(
            RankError,
            match=r"rank 1 of 2 failed to learn: ActorDied.*; 1 of the others reported nothing "
            r"within 0\.25 s: on a busy machine raise GROVE_RANKS_GRACE_SECONDS or GROVE_PATIENCE$",
        ):
            host.learn(NAME, tree_rows(3), 0.5)
    finally:
        os.kill(silent, signal.SIGKILL)


@pytest.mark.parametrize("reason", ["frozen", "adapters"])
def test_ranks_that_would_have_nothing_to_do_are_refused(reason):
    agents = [
        {"name": "learns", "model": "starter:oak"},
        {"name": "other", "model": "starter:oak", "learner_ranks": 2},
    ]
    agents[1] |= {"trainable": False} if reason == "frozen" else {"lora": {}}
    with pytest.raises(ConfigError, match=rf"agents\.1\.learner_ranks.*{reason}"):
        tiny_config(agents=agents)
