"""Credit: from the raw scores of a tree to the advantage of each node.

A new method is one module in `methods`, named as here, and one line of this registry.
"""

from __future__ import annotations

from engine.credit.group import Advantage
from engine.credit.methods import dr_grpo, grpo, mars2, per_agent, rae, reinforce_pp, rloo

ADVANTAGES: dict[str, Advantage] = {
    "dr_grpo": Advantage(dr_grpo.over_group),
    "grpo": Advantage(grpo.over_group),
    "mars2": Advantage(mars2.over_group),
    "per_agent": Advantage(per_agent.over_group),
    "rae": Advantage(rae.over_group, memory=rae.memory),
    "reinforce_pp": Advantage(reinforce_pp.over_group, reinforce_pp.over_batch),
    "rloo": Advantage(rloo.over_group),
}
