"""Which node of a finished search is the answer (docs/algorithm.md, sections 4 and 8).

Invariant: the choice sees public tests only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A node that could be the answer."""

    node: int
    """Order of creation within its tree."""
    public: float | None
    """Share of public tests passed; None where verification failed technically."""
    reward: float = 0.0
    """What a reward model thinks of it; the same for all without one."""


def rank_answers(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first: by public share, then by the reward model, ties to the latest node.

    Nodes that were not verified are left out.
    """
    verified = [c for c in candidates if c.public is not None]
    return sorted(verified, key=lambda c: (c.public, c.reward, c.node), reverse=True)


def rule_of(has_reward_model: bool) -> str:
    """In words, by what `rank_answers` decides."""
    judge = "then the reward model, " if has_reward_model else ""
    return f"most public tests passed, {judge}then the latest node"


def select_answer(nodes: Iterable[Candidate]) -> Candidate | None:
    """The search's answer; None if no node was verified."""
    ranked = rank_answers(nodes)
    return ranked[0] if ranked else None
