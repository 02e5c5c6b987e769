"""An agent gets no nodes: the search no longer chooses it, so it learns nothing.

Sees: an agent wrote none of the nodes of the last `STEPS` steps, which have `FEWEST` nodes or more
for each agent.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding, trailing
from engine.health.windows import last

TITLE = "Agent without nodes"
ADVICE = (
    "Look at its reward and at its last answers; a much weaker agent can be trained alone first, "
    "or chosen uniformly (search.agent_choice), or removed from the team."
)
GENERAL_ADVICE = (
    "Look at its reward and at its last answers; a much weaker agent can be trained alone first, "
    "or removed from the team."
)
STEPS = 5
FEWEST = 50
"""Nodes per agent. Thompson sampling starts anew in every tree: an agent with a share of 5 % has
none of 100 nodes once in 170 cases."""


def find(history: History) -> Iterator[Finding]:
    steps = list(history.steps)
    recent = last(steps, STEPS)
    nodes = sum(step.nodes for step in recent)
    if len(recent) < STEPS or nodes < FEWEST * len(history.agents):
        return
    for agent in history.agents:
        idle = trailing(steps, lambda step, agent=agent: not step.node_share.get(agent))
        if len(idle) >= STEPS:
            yield Finding(
                f"None of the {sum(step.nodes for step in idle)} nodes of the last {len(idle)} "
                "steps.",
                idle[0].step,
                agent,
                {"nodes": 0, "of": sum(step.nodes for step in idle)},
            )
