"""Tests of what a loss has beyond ratios and advantages: entropies, columns, terms of sequences and
of groups."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import binary_cross_entropy

from engine.config.agents import AgentConfig
from engine.config.loss import Aggregation, LossConfig
from engine.config.training import RowLayout, TrainingConfig
from engine.losses import POLICY_LOSSES
from engine.losses.minibatch import MinibatchRows, over_minibatch
from engine.losses.terms import LossTerms
from engine.losses.total import count_units, total_loss
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.learner import Learner
from engine.policy.learner.minibatches import split
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.weights import FullWeights
from tests.engine.losses.batches import make_batch, part
from tests.engine.policy.test_layout import gpt2, tree_rows
from tests.helpers.large import large_but


def test_what_a_loss_needs_and_does_not_get_is_named():
    logprobs, rows = make_batch()
    settings = LossConfig(policy="zvp")
    units = count_units([rows.mask_NL], settings)
    bare = replace(rows, old_entropies_NL=None, columns={})
    with pytest.raises(ValueError, match=r"policy = zvp needs entropies, zero_variance"):
        total_loss(logprobs, bare, units, settings)
    whole = total_loss(logprobs, rows, units, settings)
    now = total_loss(
        logprobs, replace(bare, columns=rows.columns), units, settings, rows.old_entropies_NL
    )
    assert whole.loss == now.loss, "with one step per batch the entropies are the current ones"


class PerSequence:
    """A loss of sequences alone: the mean over sequences of the sum of their log-probs."""

    AGGREGATION = Aggregation.TOKEN_MEAN

    @staticmethod
    def loss_terms(context):
        sums_N = (context.logprobs_NL * context.mask_NL).sum(-1)
        return LossTerms(torch.zeros_like(context.logprobs_NL), per_sequence_N=sums_N)


@pytest.mark.parametrize("aggregation", [None, *Aggregation])
def test_a_term_of_sequences_is_a_mean_over_sequences(aggregation):
    logprobs, rows = make_batch()
    POLICY_LOSSES["per_sequence"] = PerSequence
    try:
        settings = LossConfig(policy="per_sequence", aggregation=aggregation, kl_coefficient=0)
        masked = replace(rows, mask_NL=rows.mask_NL * (torch.arange(6) > 0)[:, None])
        units = count_units([masked.mask_NL], settings)
        result = total_loss(logprobs, masked, units, settings)
    finally:
        del POLICY_LOSSES["per_sequence"]
    expected = (logprobs * masked.mask_NL).sum() / 5
    assert result.policy.item() == pytest.approx(expected.item()) and result.clip_fraction == 0
    (gradient,) = torch.autograd.grad(result.loss, logprobs)
    assert torch.allclose(gradient, masked.mask_NL / 5)


def trained(policy, layout=RowLayout.PADDED, budget=10_000, minibatches=3, rows=None):
    """(stats, weights) after one batch of steps that move the policy."""
    agent = AgentConfig(
        name="tiny", model="-",
        optimizer={"learning_rate": 3e-3, "schedule": "constant", "warmup_fraction": 0.0},
    )  # fmt: skip
    plan = TrainingConfig(row_layout=layout, micro_batch_tokens=budget, minibatches=minibatches)
    model = gpt2()
    weights = FullWeights(copy.deepcopy(model), reload=lambda directory: model)
    wide = {"clip_low": 0.2, "clip_high": 0.28}
    loss = LossConfig(policy=policy, kl_coefficient=0.0, importance_correction=False, **wide)
    stats = Learner(weights, 0, agent, loss, plan).update(rows or tree_rows(), 0.5)
    return stats, list(weights.model.parameters())


def test_a_row_may_have_an_advantage_for_each_token():
    rows = tree_rows()[:12]
    _, expected = trained("ppo", minibatches=1, rows=rows)
    lists = [
        replace(row, advantage=[row.advantage] * len(row.output_ids)) if n % 2 else row
        for n, row in enumerate(rows)
    ]
    _, ragged = trained("ppo", minibatches=1, rows=lists)
    assert all(map(torch.equal, expected, ragged))
    fewer = replace(rows[0], advantage=[0.5, 0.5])
    with pytest.raises(ValueError, match=r"2 advantages of \d+ tokens; give one for each"):
        trained("ppo", minibatches=1, rows=[fewer])
    first = [
        replace(row, advantage=[row.advantage] + [0.0] * (len(row.output_ids) - 1)) for row in rows
    ]
    assert not all(map(torch.equal, expected, trained("ppo", minibatches=1, rows=first)[1]))


def test_rl_zvp_learns_from_the_entropies_with_which_the_update_starts():
    """Advantages written out from a forward pass, and learned from by ppo, give the same weights,
    over three steps that move the policy."""
    stats, weights = trained("zvp")
    given, model = [], gpt2()
    for row in tree_rows():
        with torch.no_grad():
            _, entropy_NL = output_logprobs(model, pad_rows([row], 0, "cpu"))
        entropy = entropy_NL[0, : len(row.output_ids)]
        mark = row.columns["zero_variance"]
        formed = 0.1 * entropy if mark > 0 else 0.1 * (entropy - entropy.max())
        given.append(replace(row, advantage=formed.tolist()) if mark else row)
    _, expected = trained("ppo", rows=given)
    for a, b in zip(weights, expected, strict=True):
        assert (a - b).abs().max() <= 1e-6
    marked = [len(row.output_ids) for row in given if row.columns["zero_variance"]]
    # Each step's share is a mean of its own; all are near that of the whole.
    whole = sum(marked) / sum(len(row.output_ids) for row in given)
    assert stats.figures["by_entropy"] == pytest.approx(whole, abs=0.1)


def columns(balance=True, beta=1.0, *, drift, groups, scores, lengths=None):
    settings = LossConfig(policy="pacs", pacs={"balance": balance, "beta": beta})
    rows = MinibatchRows(
        torch.tensor(drift, dtype=torch.float64),
        torch.tensor(lengths or [1] * len(drift)),
        torch.tensor(groups),
        {"scores": torch.tensor(scores, dtype=torch.float64)},
    )
    return over_minibatch(settings)(rows, settings)


def test_on_policy_the_slope_of_pacs_is_the_advantage_of_rloo():
    scores, groups = [1.0, 0.0, 0.25, 1.0, 1.0, 0.0], [3, 3, 3, 5, 5, 8]
    result = columns(False, 0.5, drift=[0.0] * 6, groups=groups, scores=scores)
    advantages = torch.tensor([1 - 0.125, 0 - 0.625, 0.25 - 0.5, 0, 0, 0], dtype=torch.float64)
    sequences, counted = 6, 5
    assert torch.allclose(result["slope"], -0.5 / counted * advantages * sequences)


def test_right_and_wrong_answers_of_a_tree_weigh_the_same_in_pacs():
    rows = {"drift": [0.0] * 5, "groups": [1] * 5, "scores": [1.0, 0.0, 0.0, 0.0, 0.0]}
    value = columns(**rows)["value"]
    assert value[0] == pytest.approx(4 * value[1].item())
    assert value.sum().item() == pytest.approx(columns(False, **rows)["value"].sum().item())
    soft = {**rows, "scores": [1.0, 0.0, 0.0, 0.5, 0.0]}
    assert torch.equal(columns(**soft)["value"], columns(False, **soft)["value"])
    empty = columns(drift=[0.4, 0.0], groups=[1, 1], scores=[1.0, 0.0], lengths=[3, 0])
    assert empty["value"][1] == 0 and empty["slope"][0] != 0
    alone = columns(drift=[0.4], groups=[1], scores=[1.0], lengths=[3])
    assert alone["value"].tolist() == alone["slope"].tolist() == [0.0]


def test_minibatches_are_cut_between_trees_where_a_loss_compares_rows():
    rows = [TrainingRow([1], [2], [0.0], 0.0, 0, tree=tree) for tree in (1, 1, 2, 3, 3, 3, 2, 4)]
    parts = split(rows, 3, whole_trees=True)
    assert [{row.tree for row in part} for part in parts] == [{1, 4}, {2}, {3}]
    assert sorted(map(id, rows)) == sorted(id(row) for part in parts for row in part)
    assert len(split(rows[:2], 3, whole_trees=True)) == 1
    assert split([], 3, whole_trees=True) == split([], 3) == []
    assert [len(part) for part in split(rows, 3)] == [3, 3, 2]


LAYOUTS = [(RowLayout.PADDED, 90), (RowLayout.PACKED, 110), (RowLayout.PREFIX, 110)]


@pytest.mark.parametrize(("layout", "budget"), large_but(LAYOUTS[2:], LAYOUTS))
def test_a_tree_that_forward_passes_divide_is_compared_as_a_whole(layout, budget):
    stats, expected = trained("pacs")
    actual, weights = trained("pacs", layout, budget)
    assert actual.policy_loss == pytest.approx(stats.policy_loss, abs=1e-9)
    assert actual.figures["label_error"] == pytest.approx(stats.figures["label_error"], abs=1e-9)
    for a, b in zip(expected, weights, strict=True):
        assert (a - b).abs().max() <= 1e-8


def test_the_learner_minimises_the_cross_entropy_of_the_papers_classifier():
    """Three optimizer steps by autograd through the loss itself, tree by tree."""
    _, weights = trained("pacs")
    model, rows = gpt2(), tree_rows()
    padded = {id(row): pad_rows([row], 0, "cpu") for row in rows}
    with torch.no_grad():
        old = {key: sum_of(model, one) for key, one in padded.items()}
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.0)
    trees = {}
    for row in rows:
        trees.setdefault(row.tree, []).append(row)
    trees = list(trees.values())
    for start in range(3):
        terms = []
        for tree in trees[start::3]:
            drift = [sum_of(model, padded[id(row)]) - old[id(row)] for row in tree]
            labels = [row.columns["scores"] for row in tree]
            for i, label in enumerate(labels):
                if len(tree) == 1:
                    continue
                psi = drift[i] - (sum(drift) - drift[i]) / (len(tree) - 1)
                loss = binary_cross_entropy(psi.sigmoid(), torch.tensor(label).double())
                mixed = 0 < sum(labels) < len(labels)
                terms.append(loss * (len(tree) / (2 * labels.count(label)) if mixed else 1.0))
        adam.zero_grad()
        (sum(terms) / len(terms)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    for a, b in zip(model.parameters(), weights, strict=True):
        assert (a - b).abs().max() <= 1e-7
    assert math.isfinite(trained("pacs", minibatches=1)[0].policy_loss)


def sum_of(model, padded):
    return (output_logprobs(model, padded)[0] * padded.mask_NL).sum()


SHOWN = torch.tensor([False, True, False, False, True, False])


def test_demonstrations_are_in_the_policy_loss_alone_and_not_corrected():
    logprobs, rows = make_batch(spread=1.0)
    settings = LossConfig(
        policy="mixed_policy", kl_coefficient=0.5, entropy_coefficient=0.1, importance_threshold=1.2
    )
    mixed = replace(rows, demonstrations_N=SHOWN)
    units = count_units([rows.mask_NL], settings, demonstrations=[SHOWN])
    assert units.sampled == int(rows.mask_NL[~SHOWN].sum()) < units.tokens
    result = total_loss(logprobs, mixed, units, settings, rows.old_entropies_NL)
    own, shown = part(rows, ~SHOWN), part(rows, SHOWN)
    alone = total_loss(
        logprobs[~SHOWN], own, count_units([own.mask_NL], settings), settings, own.old_entropies_NL
    )
    assert (result.kl, result.mismatch) == (alone.kl, alone.mismatch)
    probabilities = logprobs[SHOWN].exp()
    shaped = probabilities / (probabilities + 0.1) * shown.advantages_NL * shown.mask_NL
    expected = (4 * alone.policy - shaped.sum() / settings.aggregation_tokens) / 6
    assert result.policy.item() == pytest.approx(expected.item(), rel=1e-12)
    bonus = (alone.loss - alone.policy - 0.5 * alone.kl).item()
    assert (result.loss - result.policy - 0.5 * result.kl).item() == pytest.approx(bonus)
    assert result.clip_fraction == 0, "the authors do not clip"
    held = shown.mask_NL.bool()
    assert result.figures["shown_probability"].item() == pytest.approx(
        probabilities[held].mean().item()
    )
    unlikely = probabilities[held] * (probabilities[held] < 0.1)
    assert result.figures["unlikely_probability"].item() == pytest.approx(unlikely.mean().item())
    weights = 0.1 * unlikely / (unlikely + 0.1) ** 2
    assert result.figures["unlikely_weight"].item() == pytest.approx(weights.mean().item())


def test_a_batch_of_demonstrations_alone_has_finite_parts():
    logprobs, rows = make_batch()
    settings = LossConfig(policy="mixed_policy", kl_coefficient=0.5)
    every = torch.ones(6, dtype=torch.bool)
    units = count_units([rows.mask_NL], settings, demonstrations=[every])
    result = total_loss(logprobs, replace(rows, demonstrations_N=every), units, settings)
    assert result.kl == result.mismatch == 0 and result.loss.isfinite()
