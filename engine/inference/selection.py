"""Selection of the answer of a finished search (docs/algorithm.md, sections 4 and 8).

Invariant: the choice sees public tests only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engine.rollout.forest import GrowingTree
from engine.rollout.types import Program

Scorer = Callable[[Sequence[Program]], list[float]]
"""Reward model: returns the probability that each program is right, from 0 to 1."""


@dataclass(frozen=True)
class Candidate:
    """A node that may be the answer."""

    node: int
    """Id, which is its order of creation within its tree."""
    public: float | None
    """Score by public tests, by default the share that passed; None where verification failed
    technically."""
    reward: float = 0.0
    """Score of the reward model; the same for all nodes without one."""


def rank_answers(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Returns candidates best first: by public share, then by reward, ties to the latest node.

    Leaves out nodes that were not verified.
    """
    verified = [c for c in candidates if c.public is not None]
    return sorted(verified, key=lambda c: (c.public, c.reward, c.node), reverse=True)


def rule_of(has_reward_model: bool) -> str:
    """Returns a description of the ranking of `rank_answers`."""
    judge = "then the reward model, " if has_reward_model else ""
    return f"most public tests passed, {judge}then the latest node"


def select_answer(nodes: Iterable[Candidate]) -> Candidate | None:
    """Returns the search's answer; None if no node was verified."""
    ranked = rank_answers(nodes)
    return ranked[0] if ranked else None


def rewards_of(trees: Sequence[GrowingTree], scorer: Scorer | None) -> list[dict[int, float]]:
    """Returns the reward model's score of every verified node, per tree; empty without a model."""
    if scorer is None:
        return [{} for _ in trees]
    nodes = [(tree, node) for tree in trees for node in tree.verified()]
    scores = scorer([(tree.problem, node.answer.program) for tree, node in nodes])
    rewards: dict[GrowingTree, dict[int, float]] = {tree: {} for tree in trees}
    for (tree, node), score in zip(nodes, scores, strict=True):
        rewards[tree][node.node] = score
    return list(rewards.values())


def tree_answer(tree: GrowingTree, rewards: dict[int, float]) -> int | None:
    """Returns the node that is the answer of a search, whose nodes are scored by public tests; None
    if nothing was verified."""
    chosen = select_answer(
        Candidate(node, tree.written[node].score, rewards.get(node, 0.0))
        for node in sorted(tree.written)
        if tree.written[node].is_answer
    )
    return None if chosen is None else chosen.node
