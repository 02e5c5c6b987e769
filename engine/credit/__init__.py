"""Credit: from the raw scores of a tree to the advantage of each node.

A new method is one module in `methods` and one line of this registry (docs/extending.md).
"""

from __future__ import annotations

from engine.config.methods import Methods
from engine.credit.group import Advantage, advantage_of
from engine.credit.methods import (
    adora,
    dr_grpo,
    gdpo,
    grpo,
    lens,
    lite_ppo,
    mars2,
    per_agent,
    rae,
    reinforce_pp,
    rl_zvp,
    rloo,
    tempo,
)

ADVANTAGES: Methods[Advantage] = Methods(
    "advantages",
    advantage_of,
    adora,
    dr_grpo,
    gdpo,
    grpo,
    lens,
    lite_ppo,
    mars2,
    per_agent,
    rae,
    reinforce_pp,
    rl_zvp,
    rloo,
    tempo,
)
