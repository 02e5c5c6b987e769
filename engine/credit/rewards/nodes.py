"""What a part of a reward reads: the scored nodes of one tree as parallel columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.credit.rewards.outcome import Outcome


@dataclass(frozen=True)
class Nodes:
    """All scored nodes of one tree, every agent, every depth, in one order."""

    agents_N: Sequence[str]
    parents_N: np.ndarray
    """Index of each node's parent in these columns; -1 for the root."""
    scores_N: np.ndarray
    """Raw scores; 1 is right."""
    lengths_N: np.ndarray
    """Output tokens."""
    limits_N: np.ndarray
    """Most output tokens that each node's agent may write."""
    outcomes_N: Sequence[Outcome] = ()
    """Verdicts of the tests."""
    texts_N: Sequence[str] = ()
    """Answers, without special tokens."""
    programs_N: Sequence[str] = ()
    """Programs; empty where an answer has none."""
    grades_N: Sequence[float] = ()
    """Grades of a judge, 0 to 1, in a run that has one."""
