"""Settings of Thompson sampling, part of those of the search
(`engine.search.strategies.methods.thompson`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from engine.config.base import described


class Posterior(StrEnum):
    """Family of the Thompson posteriors (docs/algorithm.md, section 2)."""

    BETA = "beta"
    GAUSSIAN = "gaussian"


class SelectionOrder(StrEnum):
    """First choice of an expansion, agent or node (docs/algorithm.md, section 2)."""

    AGENT_FIRST = "agent_first"
    NODE_FIRST = "node_first"


class AgentChoice(StrEnum):
    """Rule that chooses the agent of an expansion by the agents' scores."""

    THOMPSON = "thompson"
    UCB = "ucb"
    UNIFORM = "uniform"


class NodeChoice(StrEnum):
    """Rule that chooses between GEN, CONT and the children on the way down."""

    THOMPSON = "thompson"
    UNIFORM = "uniform"


PosteriorFamily = Annotated[
    Posterior, described("Family of the Thompson posteriors over the scores of a branch.")
]
Order = Annotated[
    SelectionOrder,
    described("Whether an expansion chooses the agent first, or the parent node first."),
]
ChoiceOfAgent = Annotated[
    AgentChoice,
    described("""
    Draws from the agents' posteriors, or UCB1 on their scores: of the node on the path
    (agent_first), or of the whole tree (node_first). `uniform` draws without regard to scores: the
    control of an ablation.
    """),
]
ChoiceOfNode = Annotated[
    NodeChoice,
    described("""
    Draws from the posteriors of GEN, CONT and the children, or, as the control of an ablation,
    `uniform` ones without regard to scores.
    """),
]
Rho = Annotated[
    float | None,
    Field(ge=0.95, le=1),
    described("""
    If set, depth-guided exploration of MARS²-T+: GEN draws are scaled by
    (0.98 rho^depth)^children.
    """),
]


def check_rho(rho: float | None, posterior: Posterior) -> None:
    """Raises `ValueError` if depth guidance cannot work with the posterior."""
    if rho is not None and posterior is Posterior.GAUSSIAN:
        raise ValueError(
            f"rho = {rho} with posterior = gaussian: depth guidance multiplies the GEN draw by a "
            "factor below 1, which makes a negative draw larger, and Gaussian draws are often "
            "negative; leave rho out, or set posterior to beta"
        )
