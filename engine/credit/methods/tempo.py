"""TEMPO: values of prefixes from the answers to one prompt (arXiv 2509.18314).

    V(s) = mean reward of the nodes whose outputs pass through the prefix s
    A_vt = [r_v - mean + V(s_t+1) - V(s_t)] / (std + 1e-6), s_t the prefix before token t
mean and std (ddof 1) are the tree's, as GRPO's. Where no other node is on a prefix, or all take the
same token, the difference is 0 and the advantage GRPO's. The differences of a node add up to
V(its end) - V(root). Code of the authors: github.com/fatebreaker/tempo.

Outputs are compared only under one prompt and one set of weights, so in a deeper tree the attempts
to repair one program form a trie of their own, whose root has their mean reward. A node that ends
is off the prefix afterwards; the end token counts as any other.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from engine.credit.group import GroupContext
from engine.credit.methods import grpo

NEEDS = {"owners", "prompts", "tokens"}


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns the advantages of GRPO."""
    return grpo.over_group(rewards_N, context)


def over_tokens(
    advantages_N: np.ndarray, rewards_N: np.ndarray, context: GroupContext
) -> list[np.ndarray]:
    """Returns the advantages of each node's tokens, (L,) each, from those of GRPO."""
    if len(rewards_N) < 2 or np.ptp(rewards_N) == 0.0:
        return [np.zeros(len(tokens)) for tokens in context["tokens"]]
    scale = 1.0 / (rewards_N.std(ddof=1) + grpo.EPSILON)
    return [
        advantage + scale * steps_L
        for advantage, steps_L in zip(advantages_N, value_steps(rewards_N, context), strict=True)
    ]


def value_steps(rewards_N: np.ndarray, context: GroupContext) -> list[np.ndarray]:
    """Returns V(s_t+1) - V(s_t) of each node's tokens, (L,) each; O(tokens)."""
    outputs = [tokens.tolist() for tokens in context["tokens"]]
    steps = [np.zeros(len(tokens)) for tokens in outputs]
    tries: defaultdict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for node, (owner, prompt) in enumerate(zip(context["owners"], context["prompts"], strict=True)):
        tries[owner, tuple(prompt.tolist())].append(node)
    pending = [(nodes, 0) for nodes in tries.values()]
    while pending:
        nodes, depth = pending.pop()
        if len(nodes) < 2:
            continue  # alone on the prefix: its value is the node's reward from here on
        value = rewards_N[nodes].mean()
        for onward in _branches(outputs, nodes, depth):
            step = rewards_N[onward].mean() - value if len(onward) < len(nodes) else 0.0
            for node in onward:
                steps[node][depth] = step
            pending.append((onward, depth + 1))
    return steps


def _branches(outputs: list[list[int]], nodes: list[int], depth: int) -> list[list[int]]:
    """Returns the nodes that have a token at this depth, by that token."""
    branches: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        if len(outputs[node]) > depth:
            branches[outputs[node][depth]].append(node)
    return list(branches.values())
