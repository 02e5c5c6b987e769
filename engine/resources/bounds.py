"""Bounds of a run's settings on one machine: programs at once, and threads of all processes.

Invariant: they refuse what no machine of this size does in useful time, and nothing that is merely
slow. On a cluster its nodes bound a run instead: when its actors are placed, and by the cores that
are left for programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.config.agents import AgentConfig
from engine.config.schema import RunConfig
from engine.config.weight_sharing import actor_groups, rank_processes, weight_groups

PER_CORE = 16
"""Most programs at once, and most threads of agents, per core of the machine."""


@dataclass(frozen=True)
class Bound:
    """An amount that settings request, and the most that the machine allows."""

    path: str
    """The setting that is lowered first."""
    value: int
    what: str
    amount: int
    most: int
    unit: str
    remedy: str

    @property
    def has(self) -> str:
        return f"at most {self.most} {self.unit}"

    @property
    def fits(self) -> bool:
        return self.amount <= self.most


def bounds(config: RunConfig, cores: int, memory_bytes: int) -> Iterator[Bound]:
    """Yields the bounds of a run on a machine of this size; the settings of its sandbox are lowered
    to what the operator allows (`SandboxCaps.of_run`)."""
    sandbox, compute = config.sandbox, config.compute
    yield Bound(
        "sandbox.workers", sandbox.workers, "programs that run at once",
        sandbox.workers, PER_CORE * cores, f"on {_cores(cores)}",
        "lower sandbox.workers to the number of cores",
    )  # fmt: skip
    yield Bound(
        "sandbox.workers", sandbox.workers,
        f"memory of {sandbox.workers} programs of {sandbox.memory_mb} MiB",
        sandbox.workers * sandbox.memory_mb, memory_bytes >> 20, "MiB",
        "lower sandbox.workers or sandbox.memory_mb",
    )  # fmt: skip
    processes = sum(map(len, generating_actors(config))) + rank_processes(config.agents)
    yield Bound(
        "compute.threads_per_agent", compute.threads_per_agent,
        f"threads of {processes} processes with models",
        processes * compute.threads_per_agent, PER_CORE * cores, f"on {_cores(cores)}",
        "lower compute.threads_per_agent, compute.generators_per_agent or learner_ranks",
    )  # fmt: skip


def policy_groups(config: RunConfig) -> list[list[AgentConfig]]:
    """Returns the owners of the weights in each actor, group by group."""
    owners = {name: group[0] for name, group in weight_groups(config.agents).items()}
    return [[owners[name] for name in names] for names in actor_groups(config.agents)]


def generating_actors(config: RunConfig) -> list[range]:
    """Returns, for each group of policies in one actor, the actors that generate: its learner and
    its generators."""
    more = config.compute.generators_per_agent
    return [
        range(1 + (more if any(a.trainable for a in group) else 0))
        for group in policy_groups(config)
    ]


def _cores(cores: int) -> str:
    return "1 core" if cores == 1 else f"{cores} cores"
