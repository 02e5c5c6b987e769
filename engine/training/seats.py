"""Seats of a run's actors: the bundles of resources that they need, and what fits on which nodes.

A bundle is a set of resources that one node has to provide: those of an agent's learner, or of one
of its generators; with `compute.placement = colocated` a learner and all its generators are one
bundle. `engine.training.cluster` reserves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.config.agents import AgentConfig
from engine.config.compute import ComputeConfig, Placement
from engine.config.generator_support import generator_gpus
from engine.config.schema import RunConfig
from engine.config.weight_sharing import actor_groups, rank_processes, weight_groups
from engine.run.waits import TeamError

Resources = dict[str, float]


@dataclass(frozen=True)
class Bundle:
    """Resources that one node has to provide, and the actors that use them."""

    name: str
    actors: int
    resources: Resources

    def each(self) -> Resources:
        """Returns the share of one of its actors."""
        return {kind: amount / self.actors for kind, amount in self.resources.items()}


@dataclass(frozen=True)
class Seat:
    """Placement of one actor: its bundle's index in the group, and its share of the resources."""

    bundle: int
    resources: Resources


@dataclass
class Seats:
    """Seats of the learner and the generators of every group of policies."""

    bundles: list[Bundle] = field(default_factory=list)
    learners: list[Seat] = field(default_factory=list)
    generators: list[list[Seat]] = field(default_factory=list)


@dataclass(frozen=True)
class _Group:
    """Policies whose weights the same actors hold."""

    owners: list[AgentConfig]
    generators: int
    vllm_gpus: int
    """GPUs that each generator has to itself."""

    @property
    def name(self) -> str:
        return " and ".join(owner.name for owner in self.owners)


def seats_of(config: RunConfig, gpus: float) -> Seats:
    """Returns the seats of a run; `gpus` is the cluster's number of GPUs.

    Ranks of a learner and vLLM get whole GPUs. The rest is divided: an actor gets one GPU, or a
    share of one where there are fewer GPUs than bundles.

    Raises:
        TeamError: no GPU is left for the actors that hold the weights.
    """
    compute, groups = config.compute, _groups(config)
    on_gpus = compute.device != "cpu" and not compute.deterministic and gpus > 0
    share = _share(config, groups, gpus) if on_gpus else 0.0
    seats = Seats()
    for group in groups:
        # A generator with its own GPUs needs a whole one for the weights that it receives.
        gpu = 1.0 + group.vllm_gpus if group.vllm_gpus and on_gpus else share
        if compute.placement is Placement.COLOCATED and group.generators:
            _seat_together(seats, compute, group, gpu)
        else:
            _seat_apart(seats, compute, group, gpu)
        for owner in (one for one in group.owners if one.learner_ranks > 1):
            # The learner starts its ranks, anywhere in the group.
            for rank in range(owner.learner_ranks):
                _add(seats, compute, f"rank {rank} of {owner.name}", 1, float(on_gpus))
    return seats


def _groups(config: RunConfig) -> list[_Group]:
    by_name = {name: group[0] for name, group in weight_groups(config.agents).items()}
    groups = []
    for names in actor_groups(config.agents):
        owners = [by_name[name] for name in names]
        learns = any(owner.trainable for owner in owners)
        generators = config.compute.generators_per_agent if learns else 0
        groups.append(_Group(owners, generators, generator_gpus(owners)))
    return groups


def _share(config: RunConfig, groups: Sequence[_Group], gpus: float) -> float:
    """Returns the share of a GPU of each bundle that has none to itself, at most 1.

    Raises:
        TeamError: none is left.
    """
    together = config.compute.placement is Placement.COLOCATED
    bundles = sum(1 if together else 1 + group.generators for group in groups)
    own = sum(group.vllm_gpus * (1 + group.generators) for group in groups)
    left = gpus - rank_processes(config.agents) - own
    if left <= 0 and bundles:
        raise TeamError(
            f"the cluster has {gpus:g} GPUs, all of which ranks and vLLM have to themselves: none "
            "is left for the actors that hold the weights. Add some, or lower agents.NAME."
            "learner_ranks or agents.NAME.generator.tensor_parallel_size"
        )
    return min(1.0, left / bundles)


def _seat_together(seats: Seats, compute: ComputeConfig, group: _Group, gpu: float) -> None:
    """Adds one bundle for the learner and all generators; `gpu` is what one actor needs."""
    actors = 1 + group.generators
    gpu *= actors if group.vllm_gpus else 1
    seat = _add(seats, compute, f"learner and generators of {group.name}", actors, gpu)
    seats.learners.append(seat)
    seats.generators.append([seat] * group.generators)


def _seat_apart(seats: Seats, compute: ComputeConfig, group: _Group, gpu: float) -> None:
    seats.learners.append(_add(seats, compute, f"learner of {group.name}", 1, gpu))
    seats.generators.append(
        [
            _add(seats, compute, f"generator {number} of {group.name}", 1, gpu)
            for number in range(group.generators)
        ]
    )


def _add(seats: Seats, compute: ComputeConfig, name: str, actors: int, gpu: float) -> Seat:
    resources: Resources = {"CPU": float(compute.threads_per_agent * actors)}
    if gpu:
        resources["GPU"] = gpu
    bundle = Bundle(name, actors, resources)
    seats.bundles.append(bundle)
    return Seat(len(seats.bundles) - 1, bundle.each())


def misfit(bundles: Sequence[Bundle], nodes: Sequence[Resources], strategy: str) -> str:
    """Returns why these bundles do not fit on such nodes even if all were free; empty if they do.

    Places the largest bundles first, each where most is left: on different nodes with
    STRICT_SPREAD, all on one with STRICT_PACK.
    """
    ordered = sorted(bundles, key=lambda b: (-b.resources.get("GPU", 0), -b.resources["CPU"]))
    if strategy == "STRICT_PACK":
        sums = {k: sum(b.resources.get(k, 0) for b in bundles) for k in ("CPU", "GPU")}
        ordered = [Bundle("all bundles together", 1, {k: v for k, v in sums.items() if v})]
    left = [dict(node) for node in nodes]
    for bundle in ordered:
        fitting = [
            node
            for node in left
            if all(node.get(kind, 0) >= amount - 1e-6 for kind, amount in bundle.resources.items())
        ]
        if not fitting:
            has = "; ".join(resource_text(node) for node in nodes) or "no node"
            return (
                f"the bundle `{bundle.name}` needs {resource_text(bundle.resources)}, which no "
                f"node has left with the other bundles placed ({strategy}); the cluster's "
                f"{len(nodes)} nodes have: {has}. Add nodes, or lower compute.threads_per_agent or "
                "compute.generators_per_agent"
            )
        chosen = max(fitting, key=lambda node: (node.get("GPU", 0), node.get("CPU", 0)))
        for kind, amount in bundle.resources.items():
            chosen[kind] -= amount
        if strategy == "STRICT_SPREAD":
            left = [node for node in left if node is not chosen]
    return ""


def resource_text(resources: Mapping[str, float]) -> str:
    """Returns numbers of cores and GPUs, for errors."""
    return ", ".join(
        f"{resources.get(kind, 0):g} {word}" for kind, word in (("CPU", "cores"), ("GPU", "GPUs"))
    )
