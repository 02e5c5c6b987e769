"""Golden kinds of credit: shaping, penalty, advantages and the filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from engine.config.credit import CreditConfig
from engine.config.golden_kind import Case, lookup, options
from engine.config.loss import LossConfig
from engine.config.methods import registry
from engine.credit import ADVANTAGES
from engine.credit.columns import Group, TreeRecord, columns_of, concatenated
from engine.credit.filters import informative
from engine.credit.group import Advantage, BatchContext, GroupContext
from engine.credit.rewards.overlong import overlong_penalty
from engine.credit.shaping import tree_shaping
from engine.losses.ragged import padded, unpadded
from engine.losses.terms import LossContext

DEFAULT = CreditConfig().advantage
GROUP_NORM = "group_norm"
"""What other libraries call the group advantage of the default."""


def shaping(case: Case) -> Any:
    inputs = case["inputs"]
    rewards, parents = np.array(inputs["rewards"], dtype=float), np.array(inputs["parent"], int)
    return tree_shaping(rewards, parents, *_weights(inputs)).tolist()


def _weights(inputs: dict[str, Any]) -> tuple[float, float]:
    defaults = CreditConfig()
    gamma = inputs.get("gamma", defaults.shaping_gamma)
    return gamma, inputs.get("lambda", defaults.shaping_lambda)


def advantage(case: Case) -> Any:
    inputs = case["inputs"]
    name = inputs.get("estimator", DEFAULT)
    name = DEFAULT if name == GROUP_NORM else name
    method = lookup(ADVANTAGES.every(), name, "estimator")
    own = options("advantages", name, inputs)
    rewards = np.array(inputs["rewards"], dtype=float)
    count = len(rewards)
    groups = _groups(inputs, count)
    contexts = [GroupContext(columns_of(_group(inputs, one), method.needs), own) for one in groups]
    advantages = np.zeros(count)
    for group, context in zip(groups, contexts, strict=True):
        advantages[group] = method.over_group(rewards[group], context)
    if method.over_batch:
        order = np.concatenate(groups)
        context = BatchContext(
            concatenated([one.columns for one in contexts]),
            own,
            rewards_N=rewards[order],
            trees_N=np.repeat(np.arange(len(groups)), [len(group) for group in groups]),
        )
        advantages[order] = method.over_batch(advantages[order], context)
    return advantages.tolist()


def _group(inputs: dict[str, Any], group: list[int]) -> Group:
    """Returns a flat group: the methods of cases use no tree."""
    count = len(inputs["rewards"])
    lengths = inputs.get("lengths") or [1] * count
    columns = {
        "agents": inputs.get("agents") or ["0"] * count,
        "scores": inputs.get("scores", inputs["rewards"]),
        "lengths": lengths,
        "limits": inputs.get("limits") or lengths,
    }
    own = {name: [values[node] for node in group] for name, values in columns.items()}
    ids = [node + 1 for node in group]
    further = {
        "owners": inputs.get("prefixes"),
        "prompts": [[]] * count,
        "tokens": inputs.get("tokens"),
        "logprobs": inputs.get("log_probs"),
    }
    tree = TreeRecord(
        ids,
        [0] * len(ids),
        own["agents"],
        own["scores"],
        own["lengths"],
        {name: [values[node] for node in group] for name, values in further.items() if values},
    )
    return Group(tree, range(len(ids)), own["limits"])


def token_advantage(case: Case) -> Any:
    inputs = case["inputs"]
    method = lookup(ADVANTAGES.every(), inputs["method"], "method")
    inputs = {"rewards": inputs.get("scores"), **inputs}
    rewards = np.array(inputs["rewards"], dtype=float)
    result: list[list[float]] = [[] for _ in rewards]
    for group in _groups(inputs, len(rewards)):
        context = GroupContext(columns_of(_group(inputs, group), method.needs))
        of_nodes = method.over_group(rewards[group], context)
        if method.over_tokens:
            own = method.over_tokens(of_nodes, rewards[group], context)
            by_node = [advantages_L.tolist() for advantages_L in own]
        else:
            by_node = _by_loss(inputs, group, of_nodes, method, context)
        for node, by_token in zip(group, by_node, strict=True):
            result[node] = by_token
    return result


def _by_loss(
    inputs: dict[str, Any],
    group: list[int],
    of_nodes: np.ndarray,
    method: Advantage,
    own: GroupContext,
) -> list[list[float]]:
    """Returns the advantages of a group's nodes that the loss forms which needs what the method
    makes for one (`golden_advantages` of its module)."""
    assert method.row_columns
    losses = registry("losses").methods
    config = next(
        one
        for one in map(LossConfig().by, losses.every())
        if method.makes <= one.needs and hasattr(one.module("policy"), "golden_advantages")
    )
    settings = options("losses", config.policy, inputs)
    entropies = [inputs["entropies"][node] for node in group]
    padding = padded(entropies)
    context = LossContext(
        old_logprobs_NL=padding,
        rollout_logprobs_NL=padding,
        advantages_NL=torch.tensor(of_nodes)[:, None].expand_as(padding),
        mask_NL=padded([[1.0] * len(row) for row in entropies]),
        logprobs_NL=padding,
        entropies_NL=padding,
        columns={name: torch.tensor(one) for name, one in method.row_columns(own).items()},
        config=config.model_copy(update={config.policy: settings}),
    )
    return unpadded(config.module("policy").golden_advantages(context), entropies)


def _groups(inputs: dict[str, Any], count: int) -> list[list[int]]:
    """Returns the indices of each group's nodes: by tree id, by consecutive `group_size`, or all
    in one."""
    size = inputs.get("group_size", count)
    trees = inputs.get("tree_ids") or [node // size for node in range(count)]
    groups: dict[Any, list[int]] = {}
    for node, tree in zip(range(count), trees, strict=True):
        groups.setdefault(tree, []).append(node)
    return list(groups.values())


def program_similarity(case: Case) -> Any:
    programs = case["inputs"]["programs"]
    zeros = [0] * len(programs)
    further = {"programs": programs}
    tree = TreeRecord(range(1, len(programs) + 1), zeros, [""] * len(zeros), zeros, zeros, further)
    embeddings = columns_of(Group(tree, range(len(zeros)), zeros), {"embeddings"})["embeddings"]
    return (embeddings @ embeddings.T).astype(float).tolist()


def overlong(case: Case) -> Any:
    inputs = case["inputs"]
    penalised = np.array(inputs["rewards"], dtype=float) + overlong_penalty(
        np.array(inputs["lengths"]),
        inputs["generate_max_len"],
        inputs["overlong_buffer_len"],
        inputs.get("factor", 1.0),
    )
    advantages = ADVANTAGES[DEFAULT].over_group(penalised, GroupContext())
    return {"penalised_rewards": penalised.tolist(), "advantages": advantages.tolist()}


def dynamic_filter(case: Case) -> Any:
    low, high = case["inputs"].get("range", (0.0, 1.0))
    return [informative(scores, low, high) for scores in case["inputs"]["trees"]]
