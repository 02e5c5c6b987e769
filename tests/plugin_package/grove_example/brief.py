"""Lines of the program beyond those that are free; a negative weight makes it a penalty."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from engine.credit.rewards.nodes import Nodes
from engine.credit.rewards.reward import PartOptions


class Options(PartOptions):
    """Lines of the program beyond those that are free."""

    free: int = Field(10, ge=0, le=10_000)
    """Lines that cost nothing."""


def part(nodes: Nodes, options: Options) -> np.ndarray:
    """Returns the number of lines beyond `free` of each node's program."""
    lines = [program.count("\n") + bool(program) for program in nodes.programs_N]
    return np.maximum(np.array(lines, dtype=np.float64) - options.free, 0.0)
