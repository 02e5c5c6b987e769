"""Agents that share one set of weights: their common settings and the errors of such groups.

Homogeneous multi-role agents (docs/algorithm.md, section 1) name the agent whose weights they use
in `shares_weights_with`. That agent, the owner, is trained, saved and reported.
Invariant: if `sharing_errors` returns none, all settings of the weights (as opposed to the role)
are equal within a group, and no owner uses another agent's weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config.agents import AgentConfig

ROLE_SETTINGS = ("name", "role", "shares_weights_with")
"""Settings that an agent never inherits from its partner."""
WEIGHT_SETTINGS = (
    "model",
    "trainable",
    "lora",
    "chat_template",
    "generator",
    "optimizer",
    "learner_ranks",
)
"""Settings of the weights, which cannot differ between agents that share them."""


def with_shared_settings(data: Any) -> Any:
    """Returns plain settings in which agents inherit from their partner what they leave out.

    Data without a list of agents is returned unchanged, to be refused elsewhere.
    """
    if not isinstance(data, dict) or not isinstance(data.get("agents"), (list, tuple)):
        return data
    agents_by_name = {
        a["name"]: a for a in data["agents"] if isinstance(a, dict) and _is_text(a, "name")
    }
    return data | {"agents": [_with_inherited(agent, agents_by_name) for agent in data["agents"]]}


def sharing_errors(agents: Sequence[AgentConfig]) -> list[dict[str, Any]]:
    """Returns the errors of the agents' partners, adapters and ranks: path, value and reason."""
    by_name = {agent.name: agent for agent in agents}
    errors: list[dict[str, Any]] = []
    for position, agent in enumerate(agents):
        path = f"agents.{position}"
        if reason := _impossible_partner(agent, by_name):
            value = agent.shares_weights_with
            errors.append({"path": f"{path}.shares_weights_with", "value": value, "reason": reason})
        elif agent.shares_weights_with:
            errors += _differences(path, agent, by_name[agent.shares_weights_with])
        if agent.lora and not agent.trainable:
            reason = "a frozen agent has nothing to adapt; leave lora out, or set trainable = true"
            errors.append({"path": f"{path}.lora", "value": "...", "reason": reason})
        if agent.learner_ranks > 1 and (reason := _why_no_ranks(agent)):
            errors.append(
                {"path": f"{path}.learner_ranks", "value": agent.learner_ranks, "reason": reason}
            )
    return errors


def weight_owner(agent: AgentConfig) -> str:
    """Returns the name of the agent that owns this agent's weights."""
    return agent.shares_weights_with or agent.name


def weight_groups(agents: Sequence[AgentConfig]) -> dict[str, list[AgentConfig]]:
    """Returns the agents of each set of weights by owner, the owner first."""
    groups = {agent.name: [agent] for agent in agents if not agent.shares_weights_with}
    for agent in agents:
        if agent.shares_weights_with:
            groups[agent.shares_weights_with].append(agent)
    return groups


def actor_groups(agents: Sequence[AgentConfig]) -> list[list[str]]:
    """Returns the owners of each actor: those with adapters over the same model together with
    frozen agents that use it unchanged; every other owner alone."""
    bases = {agent.model for agent in agents if agent.lora}
    processes: dict[tuple[str, str], list[str]] = {}
    for owner, (first, *_) in weight_groups(agents).items():
        on_base = first.lora or (first.model in bases and not first.trainable)
        key = ("base", first.model) if on_base else ("single", owner)
        processes.setdefault(key, []).append(owner)
    return list(processes.values())


def rank_processes(agents: Sequence[AgentConfig]) -> int:
    """Returns the number of processes that only learn: the ranks of policies with several."""
    owners = (group[0] for group in weight_groups(agents).values())
    return sum(owner.learner_ranks for owner in owners if owner.learner_ranks > 1)


def _why_no_ranks(agent: AgentConfig) -> str:
    """Returns why an agent cannot have several learner ranks, or an empty string."""
    if not agent.trainable:
        return "a frozen agent learns nothing; leave it out, or set trainable = true"
    if agent.lora:
        return "adapters share one base in one process and are small; leave it out, or lora"
    return ""


def _is_text(agent: dict[str, Any], key: str) -> bool:
    return isinstance(agent.get(key), str)


def _with_inherited(agent: Any, agents_by_name: dict[str, Any]) -> Any:
    if not isinstance(agent, dict) or not _is_text(agent, "shares_weights_with"):
        return agent
    partner = agents_by_name.get(agent["shares_weights_with"], {})
    inherited = {key: _merged(value, agent.get(key)) for key, value in partner.items()}
    # With an unknown partner, the error to report is the partner, not the missing model.
    return {"model": "-"} | agent | {k: v for k, v in inherited.items() if k not in ROLE_SETTINGS}


def _merged(theirs: Any, own: Any) -> Any:
    """Returns `own` completed from `theirs`; a section may be given in part."""
    if isinstance(theirs, dict) and isinstance(own, dict):
        return theirs | own
    return theirs if own is None else own


def _impossible_partner(agent: AgentConfig, by_name: dict[str, AgentConfig]) -> str:
    """Returns why this agent cannot use its partner's weights, or an empty string."""
    if agent.shares_weights_with is None:
        return ""
    partner = by_name.get(agent.shares_weights_with)
    if partner is None:
        return f"no such agent; choose one of {', '.join(n for n in by_name if n != agent.name)}"
    if partner is agent:
        return "an agent has its own weights already; leave this out, or name another agent"
    if partner.shares_weights_with:
        return f"has no weights of its own; name {partner.shares_weights_with}, which owns them"
    return ""


def _differences(path: str, agent: AgentConfig, partner: AgentConfig) -> list[dict[str, Any]]:
    return [
        {
            "path": f"{path}.{field}",
            "value": getattr(agent, field) if field in ("model", "chat_template") else "...",
            "reason": f"belongs to the weights, which are {partner.name}'s; leave it out here",
        }
        for field in WEIGHT_SETTINGS
        if getattr(agent, field) != getattr(partner, field)
    ]
