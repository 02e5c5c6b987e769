"""Agent-wise advantage (Dr. MAS, arXiv 2602.08847).

    A_v = (r_v - mean_k) / (std_k + 1e-6), std with ddof 1, over the tree's nodes of v's agent k.
Agents with different tasks, or of different skill, have rewards of different mean and spread;
normalised together, the weaker one's gradient grows with its distance from the others. An agent
with one node in a tree, or with equal rewards there, learns nothing from that tree.
"""

from __future__ import annotations

import numpy as np

from engine.credit.group import Form, GroupContext, standardised

FORM = Form.STANDARDISED
NEEDS = {"agents"}
OF_AGENT = True
"""Its groups are one agent's nodes of a tree."""
EPSILON = 1e-6


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns rewards normalised among the nodes of the same agent."""
    agents_N = context["agents"]
    advantages_N = np.zeros_like(rewards_N)
    for agent in set(agents_N):
        of_agent_N = agents_N == agent
        advantages_N[of_agent_N] = standardised(rewards_N[of_agent_N], EPSILON)
    return advantages_N
