"""Settings that a generator does not support, and deadlines for its start.

Invariant: if `generator_errors` returns none, every log-probability that is learned from is over
the whole vocabulary at the sampling temperature, with every generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.config.deadlines import ACTORS_START, VLLM_START, Deadline
from engine.config.weight_sharing import actor_groups, weight_groups

if TYPE_CHECKING:
    from engine.config.agents import AgentConfig
    from engine.config.schema import RunConfig

VLLM = "vllm"
MIN_VLLM_TEMPERATURE = 0.01
"""Lowest temperature above 0 at which vLLM samples."""


def start_deadline(agents: Sequence[AgentConfig]) -> Deadline:
    """Returns the deadline by which the agents must be ready."""
    return VLLM_START if any(map(uses_vllm, agents)) else ACTORS_START


def generator_gpus(owners: Sequence[AgentConfig]) -> int:
    """Returns the number of GPUs that the generators of these policies use exclusively, in addition
    to the learner's."""
    sizes = [agent.generator.tensor_parallel_size for agent in owners if uses_vllm(agent)]
    return sum(size for size in sizes if size > 1)


def is_endpoint(model: str) -> bool:
    """Returns whether an agent's model is an HTTP endpoint."""
    return model.startswith(("http://", "https://"))


def uses_vllm(agent: AgentConfig) -> bool:
    return agent.generator.name == VLLM


def truncates(sampling: Any) -> bool:
    """Returns whether sampling excludes some tokens."""
    return sampling.top_p < 1 or sampling.top_k > 0 or sampling.min_p > 0


def generator_errors(config: RunConfig) -> list[dict[str, Any]]:
    """Returns an error for each setting that vLLM does not support."""
    errors: list[dict[str, Any]] = []
    for position, agent in enumerate(config.agents):
        if uses_vllm(agent):
            path = f"agents.{position}"
            errors += _sampling_errors(path, agent)
            if config.compute.deterministic:
                reason = (
                    "with compute.deterministic = true: vLLM sums in an order that depends on "
                    "what else it generates; set it to torch, or deterministic to false"
                )
                errors.append({"path": f"{path}.generator.name", "value": VLLM, "reason": reason})
    return errors + _gpu_memory_errors(config.agents)


def _sampling_errors(path: str, agent: AgentConfig) -> list[dict[str, Any]]:
    sampling = agent.sampling
    error = {"path": f"{path}.sampling.temperature", "value": sampling.temperature}
    if sampling.temperature < MIN_VLLM_TEMPERATURE:
        return [error | {"reason": f"vLLM samples at {MIN_VLLM_TEMPERATURE} or more; raise it"}]
    if agent.trainable and truncates(sampling) and sampling.temperature != 1:
        reason = (
            "with top_p, top_k or min_p vLLM reports no log-probabilities over the whole "
            "vocabulary at this temperature, which training needs; set it to 1, leave those three "
            "out, or set generator.name to torch"
        )
        return [error | {"reason": reason}]
    return []


def _gpu_memory_errors(agents: Sequence[AgentConfig]) -> list[dict[str, Any]]:
    """Adapters over one base share one GPU, each with its own vLLM: their memory must fit."""
    positions = {agent.name: position for position, agent in enumerate(agents)}
    owners = {name: group[0] for name, group in weight_groups(agents).items()}
    errors = []
    for group in actor_groups(agents):
        sharing = [owners[name] for name in group if uses_vllm(owners[name])]
        shares = [agent.generator.gpu_memory_utilization for agent in sharing]
        if sum(shares) > 1:
            reason = (
                f"{', '.join(agent.name for agent in sharing)} share one GPU, and their shares "
                f"add up to {sum(shares):.2f}; lower them to less than 1 in all"
            )
            path = f"agents.{positions[sharing[-1].name]}.generator.gpu_memory_utilization"
            errors.append({"path": path, "value": shares[-1], "reason": reason})
    return errors
