"""Selection of the answer of a finished search (docs/algorithm.md, sections 4 and 8).

Invariant: the choice sees public tests only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A node that may be the answer."""

    node: int
    """Id, which is its order of creation within its tree."""
    public: float | None
    """Share of public tests passed; None where verification failed technically."""
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
