"""Format: 1 if the answer has a program, else 0 (DeepSeek-R1, arXiv 2501.12948)."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.reward import PartOptions


class Options(PartOptions):
    """Format: whether the answer has a program."""


def part(nodes: Nodes, options: Any) -> np.ndarray:
    """Returns 1 where a program was extracted from the answer, else 0."""
    return np.array([float(bool(program)) for program in nodes.programs_N])
