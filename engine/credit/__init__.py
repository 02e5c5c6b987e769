"""Credit: from the raw scores of a tree to the advantage of each node.

A new method is one module in `methods`, named as here, and one line of this registry.
"""

from __future__ import annotations

from engine.credit.group import Advantage
from engine.credit.methods import dr_grpo, mars2, rloo

ADVANTAGES: dict[str, Advantage] = {
    "dr_grpo": dr_grpo.advantages,
    "mars2": mars2.advantages,
    "rloo": rloo.advantages,
}
