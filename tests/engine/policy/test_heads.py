"""Tests of heads: what they read in every layout, what they learn, and what is kept of them."""

import copy
import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from engine.config.agents import AgentConfig
from engine.config.heads import Head, HeadOptions, Reads, heads_of
from engine.config.loss import Aggregation, LossConfig
from engine.config.training import RowLayout, TrainingConfig
from engine.inference.reward_model import RewardModel
from engine.losses.terms import policy_loss_of
from engine.policy.host import PolicyHost
from engine.policy.learner.forward import (
    inputs_of,
    output_logprobs,
    pack_rows,
    pad_rows,
)
from engine.policy.learner.heads import read_states
from engine.policy.learner.learner import Learner
from engine.policy.learner.objective import Objective
from engine.policy.learner.trie import pack, share_prefixes
from engine.policy.models.heads import forward_states, head_outputs, last_states, new_head
from engine.policy.models.load import load_policy
from engine.policy.models.weights import FullWeights
from tests.engine.policy.test_layout import gpt2, tree_rows
from tests.helpers.plugin_packages import a_package, installed
from tests.helpers.policies import tiny_config, tiny_policy

OPTIMIZER = {"learning_rate": 3e-3, "schedule": "constant", "warmup_fraction": 0.0}
AGENT = AgentConfig(name="tiny", model="-", optimizer=OPTIMIZER)
FLOW = {
    "policy": "flowrl", "clip_low": 0.2, "clip_high": 0.2, "importance_correction": False,
    "kl_coefficient": 0.0,
}  # fmt: skip
RATE = 1e-2


def flow(**options):
    return LossConfig(**FLOW, flowrl={"beta": 2.0, "head_learning_rate": RATE, **options})


def student(loss, layout=RowLayout.PADDED, budget=10_000, minibatches=3, model=None, agent=AGENT):
    model = model or gpt2()
    plan = TrainingConfig(
        row_layout=layout, micro_batch_tokens=budget, minibatches=minibatches, max_staleness=9
    )
    weights = FullWeights(copy.deepcopy(model), reload=lambda directory: model)
    return Learner(weights, 0, agent, loss, plan)


def everything(learner):
    """All weights: the model's, then those of the heads."""
    heads = learner.heads.of(learner.loss)
    return [p.detach() for p in [*learner.weights.model.parameters(), *heads.parameters()]]


def apart(one, other):
    return max(float((a - b).detach().abs().max()) for a, b in zip(one, other, strict=True))


def states_of(model, rows, batch, reads):
    """What a head reads of one forward pass, of each row without its padding."""
    seen = []
    hook = model.base_model.register_forward_hook(lambda _, __, output: seen.append(output[0]))
    output_logprobs(model, batch)
    hook.remove()
    states = read_states(seen[0], batch, reads)
    if reads is Reads.PROMPT:
        return list(states)
    return [own[: len(row.output_ids)] for own, row in zip(states, rows, strict=True)]


@pytest.mark.parametrize("reads", [Reads.TOKENS, Reads.PROMPT])
def test_a_head_reads_the_same_states_in_every_layout(reads):
    model, rows = gpt2(), tree_rows()
    inputs = [inputs_of(row) for row in rows]
    batches = [pad_rows(rows, 0, "cpu")]
    batches += [pack_rows(rows, lay(inputs), 0, "cpu") for lay in (pack, share_prefixes)]
    expected = []
    for row, ids in zip(rows, inputs, strict=True):
        own = model.base_model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        prompt = len(row.prompt_ids)
        expected.append(own[prompt - 1 :] if reads is Reads.TOKENS else own[:prompt].mean(0))
    for batch in batches:
        assert apart(states_of(model, rows, batch, reads), expected) < 1e-12


def test_padding_before_a_prompt_may_hold_anything():
    model, rows = gpt2(), tree_rows()
    batch = pad_rows(rows, 0, "cpu")
    states = forward_states(model, input_ids=batch.ids, attention_mask=batch.attention,
                            position_ids=batch.positions)  # fmt: skip
    hidden = batch.attention[..., None] == 0
    spoiled = states.masked_fill(hidden, torch.nan)
    assert torch.equal(
        read_states(spoiled, batch, Reads.PROMPT), read_states(states, batch, Reads.PROMPT)
    )


def test_new_heads_are_equal_and_draw_no_random_numbers():
    model, head = gpt2(), Head(Reads.PROMPT, layers=3)
    before = torch.get_rng_state()
    one, other = new_head(head, model), new_head(head, model)
    assert torch.equal(before, torch.get_rng_state())
    assert apart(one.parameters(), other.parameters()) == 0
    assert sum(p.numel() for p in one.parameters()) == head.parameters(16)
    assert sum(p.numel() for p in new_head(Head(Reads.LAST), model).parameters()) == 17
    states = torch.randn(2, 3, 16)
    assert head_outputs(one, states).tolist() == [[0.0] * 3] * 2


def by_hand(rows, minibatches, batches):
    """FlowRL by autograd through its definition, row by row: (weights of all, the head's steps)."""
    model, start = gpt2(), gpt2()
    head = new_head(Head(Reads.PROMPT, layers=3), model, torch.float64)
    options = {"betas": (0.9, 0.95), "weight_decay": 0.0, "eps": 1e-8}
    adams = [
        torch.optim.AdamW(model.parameters(), lr=3e-3, **options),
        torch.optim.AdamW(head.parameters(), lr=RATE, **options),
    ]
    padded = {id(row): pad_rows([row], 0, "cpu") for row in rows}

    def logprobs(of, row):
        return output_logprobs(of, padded[id(row)])[0][0]

    for _ in range(batches):
        with torch.no_grad():
            old = {id(row): logprobs(model, row) for row in rows}
            reference = {id(row): logprobs(start, row) for row in rows}
        for first in range(minibatches):
            part, terms = rows[first::minibatches], []
            for row in part:
                now = logprobs(model, row)
                prompt = torch.tensor([row.prompt_ids])
                state = model.base_model(input_ids=prompt).last_hidden_state[0].mean(0)
                gap = head(state)[0] + now.mean() - 2.0 * row.advantage
                gap = gap - reference[id(row)].mean()
                ratio = (now.detach() - old[id(row)]).sum().exp()
                terms.append(ratio.clamp(0.8, 1.2) * gap**2)
            for adam in adams:
                adam.zero_grad()
            (sum(terms) / len(terms)).backward()
            for module, adam in zip((model, head), adams, strict=True):
                torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
                adam.step()
    return [p.detach() for p in [*model.parameters(), *head.parameters()]]


@pytest.fixture(scope="module")
def learned():
    """All weights after two batches of three steps, by the definition."""
    rows = tree_rows()[:9]
    return rows, by_hand(rows, 3, batches=2)


@pytest.mark.parametrize(
    ("layout", "budget"),
    [(RowLayout.PADDED, 10_000), (RowLayout.PACKED, 110), (RowLayout.PREFIX, 10_000)],
)
def test_model_and_head_learn_what_the_loss_says_in_every_layout(learned, layout, budget):
    rows, expected = learned
    learner = student(flow(), layout, budget)
    for _ in range(2):
        stats = learner.update(rows, 0.5)
        rows = [replace(row, policy_version=learner.version) for row in rows]
    assert stats.layout == layout and stats.figures["flow_gap"] > 0 != stats.figures["log_z"]
    assert apart(everything(learner), expected) < 1e-7
    start = new_head(Head(Reads.PROMPT, layers=3), gpt2(), torch.float64)
    assert apart(expected[-10:], start.parameters()) > 1e-3


def saved(learner):
    """A learner's state as a checkpoint holds it."""
    file = io.BytesIO()
    torch.save(learner.state(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_heads_go_on_from_a_checkpoint_bit_for_bit():
    one = student(flow(), minibatches=2)
    one.update(tree_rows(), 0.5)
    again = student(flow(), minibatches=2, model=one.weights.model)
    again.weights.starting().__enter__().load_state_dict(gpt2().state_dict())
    again.load_state(saved(one))
    for learner in (one, again):
        learner.update(tree_rows(1), 0.5)
    assert apart(everything(one), everything(again)) == 0
    kept = saved(again)["heads"]["flowrl"]
    kept["modules"]["log_z"]["6.bias"] = torch.zeros(2)
    again.load_state({**saved(again), "heads": {"flowrl": kept}})
    with pytest.raises(ValueError, match=r"flowrl: the heads of the checkpoint, log_z, are not"):
        again.update(tree_rows(1), 0.5)


def test_a_loss_without_heads_leaves_none_and_keeps_those_of_another():
    plain = LossConfig(policy="ppo", kl_coefficient=0.1)
    learner = student(plain, minibatches=1)
    learner.update(tree_rows(), 0.5)
    assert set(learner.state()) == {"optimizer", "version", "masters"}
    learner.update(tree_rows(), 0.5, Objective(loss="flowrl"))  # as a composer may ask
    state = saved(learner)
    assert set(state["heads"]) == {"flowrl"}
    resumed = student(plain, minibatches=1)
    resumed.load_state(state)
    resumed.update(tree_rows(), 0.5)
    head = resumed.state()["heads"]["flowrl"]["modules"]["log_z"]
    expected = state["heads"]["flowrl"]["modules"]["log_z"]
    assert apart(head.values(), expected.values()) == 0


@pytest.mark.parametrize(("given", "rate"), [(RATE, RATE), (None, 3e-3)])
def test_a_head_has_its_own_rate_on_the_schedule_of_its_agent(given, rate):
    warm = AgentConfig(name="tiny", model="-", optimizer=OPTIMIZER | {"warmup_fraction": 0.5})
    learner = student(flow(head_learning_rate=given), agent=warm)
    learner.update(tree_rows(), 0.25)
    heads = learner.heads.of(learner.loss)
    assert [group["lr"] for group in heads.optimizer.param_groups] == [rate / 2]


LOSS = """
    from engine.config.heads import Head, HeadOptions, Reads
    from engine.config.loss import Aggregation
    from engine.losses.terms import LossTerms

    AGGREGATION = Aggregation.TOKEN_MEAN
    HEADS = {{"value": Head(Reads.TOKENS, into_model={into_model})}}

    class Options(HeadOptions):
        "Options."

    def loss_terms(context):
        values = context.heads["value"]
        return LossTerms({term} + 0.0 * context.logprobs_NL)
"""
MODULES = {
    "inside": LOSS.format(into_model=True, term="(values - 1.0) ** 2"),
    "outside": LOSS.format(into_model=False, term="(values - 1.0) ** 2"),
    "endless": LOSS.format(into_model=False, term="values * float('inf')"),
}


@pytest.fixture
def toys(tmp_path):
    points = {"grove.losses": {name: f"grove_toy.{name}" for name in MODULES}}
    with installed(a_package(tmp_path / "toys", MODULES, points)):
        yield


def bare(policy):
    return LossConfig(policy=policy, kl_coefficient=0.0, importance_correction=False)


@pytest.mark.parametrize("policy", ["inside", "outside"])
def test_a_head_reads_tokens_and_its_gradient_stays_out_of_the_model_if_it_says_so(toys, policy):
    start = [p.detach().clone() for p in gpt2().parameters()]
    learner = student(bare(policy), RowLayout.PREFIX)
    losses = [learner.update(tree_rows(), 0.5).loss for _ in range(3)]
    assert losses[2] < losses[1] < losses[0] <= 1.0
    moved = apart(start, [p.detach() for p in learner.weights.model.parameters()])
    assert (moved > 1e-4) == (policy == "inside")


def test_a_gradient_of_a_head_that_is_not_finite_moves_nothing(toys):
    learner = student(bare("endless"))
    before = [p.clone() for p in everything(learner)]
    fault = r"heads of loss\.policy = endless is .* lower loss\.endless\.head_learning_rate"
    with pytest.raises(FloatingPointError, match=fault):
        learner.update(tree_rows(), 0.5)
    assert apart(before, everything(learner)) == 0


class PlainOptions(HeadOptions):
    """Options of the losses below."""


FAULTS = [
    ({"HEADS": ["log_z"]}, "HEADS is no mapping of names to engine.config.heads.Head"),
    ({"HEADS": {"a": "prompt"}}, "HEADS is no mapping"),
    ({"HEADS": {"a": Head(Reads.PROMPT, layers=0)}}, "a has layers = 0; give 1 or more"),
    ({"HEADS": {"a": Head(Reads.LAST)}}, "a reads the last token, which a learner"),
    ({"HEADS": {"a": Head(Reads.PROMPT)}, "Options": None}, "no Options that extend"),
]


@pytest.mark.parametrize(("given", "fault"), FAULTS)
def test_heads_that_a_learner_cannot_give_are_refused(given, fault):
    sound = {"AGGREGATION": Aggregation.TOKEN_MEAN, "Options": PlainOptions, "loss_terms": len}
    loss = SimpleNamespace(**sound | given)
    with pytest.raises(ValueError, match=fault):
        policy_loss_of(loss)
    assert heads_of(None) == {}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "tiny")


def test_a_reward_model_reads_the_last_token_by_the_same_head(tiny):
    model = RewardModel.on(load_policy(str(tiny), "cpu"))
    assert model.score([("a", "b"), ("c", "def")]) == [0.5, 0.5]
    torch.nn.init.normal_(model.head.weight)
    rows = [[5, 6, 7], [9] * 12, [4]]
    states = last_states(model.policy.model, rows, model.policy.pad_id)
    assert torch.equal(model.logits(rows), model.head(states)[:, 0])
    for row, state in zip(rows, states, strict=True):
        ids = torch.tensor([row])
        alone = model.policy.model.base_model(input_ids=ids).last_hidden_state[0, -1]
        assert torch.allclose(state, alone, atol=1e-5)


def host_of(model, **agent):
    plain = tiny_config(model).agents[0].model_dump(mode="json")
    run = tiny_config(
        agents=[plain | agent],
        loss={**FLOW, "flowrl": {"beta": 2.0, "head_learning_rate": RATE}},
        training={"minibatches": 2, "max_staleness": 20},
    )
    return PolicyHost([run.agents], run, seeds=[5])


def head_of(host):
    """The head as a checkpoint holds it, on any number of ranks."""
    return host.policies["agent-0"].learner.state()["heads"]["flowrl"]["modules"]["log_z"]


def model_of(host):
    return [p.detach().clone() for p in host.policies["agent-0"].weights.model.parameters()]


@pytest.mark.large
def test_an_adapter_learns_with_its_head_and_goes_on_from_a_checkpoint(tiny, tmp_path):
    lora = {"lora": {"rank": 4, "alpha": 16.0}}
    one, again = host_of(tiny, **lora), host_of(tiny, **lora)
    start = model_of(one)
    for step in range(2):
        one.learn("agent-0", tree_rows(step), 0.5)
    assert any(bool(value.abs().max() > 0) for value in list(head_of(one).values())[-2:])
    one.end_step()
    one.save(tmp_path)
    again.restore(tmp_path)
    for host in (one, again):
        host.learn("agent-0", tree_rows(3), 0.5)
    assert apart(head_of(one).values(), head_of(again).values()) == 0
    assert apart(model_of(one), model_of(again)) == 0 < apart(start, model_of(one))


@pytest.mark.large
def test_two_ranks_have_the_head_of_one_and_either_goes_on_from_the_other(
    ray_address, tiny, tmp_path
):
    import ray

    ray.init(address=ray_address, log_to_driver=False, logging_level="error")
    try:
        one, two = host_of(tiny), host_of(tiny, learner_ranks=2)
        batches = [tree_rows(step) for step in range(3)] + [tree_rows(4)[:1]]
        for batch in batches:  # of the last, one rank has no row
            stats = [host.learn("agent-0", batch, 0.5) for host in (one, two)]
            assert stats[1].loss == pytest.approx(stats[0].loss, rel=1e-4)
            assert stats[1].figures == pytest.approx(stats[0].figures, abs=1e-4)
        assert apart(head_of(one).values(), head_of(two).values()) < 1e-5
        assert apart(model_of(one), model_of(two)) < 1e-5
        for name, host in (("one", one), ("two", two)):
            host.end_step()
            host.save(tmp_path / name)
        again = host_of(tiny)
        again.restore(tmp_path / "two")
        two.restore(tmp_path / "one")
        for host in (one, two, again):
            host.learn("agent-0", tree_rows(7), 0.5)
            assert apart(head_of(host).values(), head_of(one).values()) < 1e-5
            assert apart(model_of(host), model_of(one)) < 1e-5
    finally:
        ray.shutdown()
