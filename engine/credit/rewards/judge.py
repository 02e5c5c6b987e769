"""Judge: the grade of a model for the whole answer, over the best grade (`judge.model`).

A node without a grade is not learned from (`engine.training.judging`), so every node here has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.reward import PartOptions


class Options(PartOptions):
    """Judge: the grade that a model gives the answer, from 0 to 1."""


def part(nodes: Nodes, options: Any) -> np.ndarray:
    """Returns the grades, 0 to 1.

    Raises:
        ValueError: a node has none.
    """
    grades_N = np.array(nodes.grades_N, dtype=np.float64)
    if len(grades_N) != len(nodes.scores_N) or np.isnan(grades_N).any():
        raise ValueError("credit.judge: a node has no grade of the judge; leave it out of the tree")
    return grades_N
