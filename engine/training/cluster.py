"""Placement of a run's actors: one placement group, which holds all of them or none.

A bundle is a set of resources that one node has to provide: those of an agent's learner, or of one
of its generators; with `compute.placement = colocated` a learner and all its generators are one
bundle.

Invariant: a placement that can never succeed is refused at once, with the bundle that does not fit
and the cluster's resources; for resources that others hold it waits, with a name and a deadline.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.util.placement_group import PlacementGroup, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from engine.config import deadlines
from engine.config.compute import ComputeConfig, Placement
from engine.config.deadlines import RAY_START
from engine.config.generator_support import generator_gpus
from engine.config.schema import RunConfig
from engine.config.weight_sharing import actor_groups, rank_processes, weight_groups
from engine.preload.environment import use_setup_worker
from engine.resources.machine_cores import machine_cores
from engine.resources.ray_folder import remove_ray_folder
from engine.run.own_ray import OwnRay, is_own, ray_settings, run_nodes
from engine.run.waits import TeamError, Waiting

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


def seats_of(config: RunConfig, gpus: float) -> Seats:
    """Returns the seats of a run; `gpus` is the cluster's number of GPUs.

    Ranks of a learner and vLLM get whole GPUs. The rest is divided: an actor gets one GPU, or a
    share of one where there are fewer GPUs than bundles.

    Raises:
        TeamError: no GPU is left for the actors that hold the weights.
    """
    compute = config.compute
    owners = {name: group[0] for name, group in weight_groups(config.agents).items()}
    groups = actor_groups(config.agents)
    together = compute.placement is Placement.COLOCATED
    writers = [
        compute.generators_per_agent if any(owners[n].trainable for n in names) else 0
        for names in groups
    ]
    ranks = rank_processes(config.agents)
    own = [generator_gpus([owners[n] for n in names]) for names in groups]
    bundles = [1 if together else 1 + count for count in writers]
    left = gpus - ranks - sum(more * (1 + n) for more, n in zip(own, writers, strict=True))
    on_gpus = compute.device != "cpu" and not compute.deterministic and gpus > 0
    if on_gpus and left <= 0 and sum(bundles):
        raise TeamError(
            f"the cluster has {gpus:g} GPUs, all of which ranks and vLLM have to themselves: none "
            "is left for the actors that hold the weights. Add some, or lower agents.NAME."
            "learner_ranks or agents.NAME.generator.tensor_parallel_size"
        )
    share = min(1.0, left / sum(bundles)) if on_gpus else 0.0
    seats = Seats()
    for names, count, more in zip(groups, writers, own, strict=True):
        # A generator with its own GPUs needs a whole one for the weights that it receives.
        gpu = 1.0 + more if more and on_gpus else share
        name = " and ".join(names)
        if together and count:
            gpu *= 1 + count if more else 1
            seat = _add(seats, compute, f"learner and generators of {name}", 1 + count, gpu)
            seats.learners.append(seat)
            seats.generators.append([seat] * count)
        else:
            seats.learners.append(_add(seats, compute, f"learner of {name}", 1, gpu))
            seats.generators.append(
                [_add(seats, compute, f"generator {n} of {name}", 1, gpu) for n in range(count)]
            )
        for owner in (owners[n] for n in names if owners[n].learner_ranks > 1):
            # The learner starts its ranks, anywhere in the group.
            for rank in range(owner.learner_ranks):
                _add(seats, compute, f"rank {rank} of {owner.name}", 1, float(on_gpus))
    return seats


def _add(seats: Seats, compute: ComputeConfig, name: str, actors: int, gpu: float) -> Seat:
    resources: Resources = {"CPU": float(compute.threads_per_agent * actors)}
    if gpu:
        resources["GPU"] = gpu
    bundle = Bundle(name, actors, resources)
    seats.bundles.append(bundle)
    return Seat(len(seats.bundles) - 1, bundle.each())


def connect(config: RunConfig, waiting: Waiting, run_dir: Path | None = None) -> Callable[[], None]:
    """Joins the cluster of `compute.ray_address` or RAY_ADDRESS, or starts a Ray of the run's own
    on this machine (`engine.run.own_ray`); returns a function that disconnects or ends it.

    Raises:
        TeamError: Ray did not start, or the cluster cannot be reached.
    """
    address = config.compute.ray_address or os.environ.get("RAY_ADDRESS")
    for name, value in ray_settings().items():
        os.environ.setdefault(name, value)
    waiting("starting Ray" if not address else f"joining Ray at {address}", RAY_START.seconds)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    close: Callable[[], None] = ray.shutdown
    if address:
        options["address"] = address
        if variables := deadlines.given():  # a Ray of our own inherits them
            options["runtime_env"] = {"env_vars": variables}
        if run_dir:
            remove_ray_folder(run_dir)  # of a killed engine that joined no cluster
    else:
        # On one machine more actors than cores may share them; Ray would wait forever.
        needed = sum(b.resources["CPU"] for b in seats_of(config, 0).bundles)
        own = OwnRay(run_dir)
        close = own.close
        options |= own.options | {"num_cpus": max(int(needed), machine_cores())}
        use_setup_worker()
    try:
        start_ray(options)
    except BaseException:
        close()
        raise
    waiting("", 0.0)
    return close


def reserve(bundles: Sequence[Bundle], compute: ComputeConfig, waiting: Waiting) -> PlacementGroup:
    """Returns the placement group of a run, once every bundle has its node.

    Raises:
        TeamError: a bundle fits no node, or others held the resources until the deadline.
    """
    nodes = run_nodes()
    if reason := misfit(bundles, [node["Resources"] for node in nodes], compute.strategy):
        raise TeamError(reason)
    group = placement_group(
        [b.resources for b in bundles],
        strategy=compute.strategy,
        **_on_own_node(len(bundles)),
    )
    name = f"placement of {len(bundles)} bundles ({compute.strategy})"
    waiting(name, compute.placement_seconds)
    try:
        ready = group.wait(compute.placement_seconds)
    finally:
        waiting("", 0.0)
    if not ready:
        ray.util.remove_placement_group(group)
        free = _resource_text(ray.available_resources())
        raise TeamError(
            f"waited {compute.placement_seconds:.0f} s for the {name}; the cluster has "
            f"{_resource_text(ray.cluster_resources())}, of which {free} are free: end "
            "what else runs there, or raise compute.placement_seconds"
        )
    return group


def gpus_of(nodes: Sequence[dict[str, Any]]) -> float:
    """Returns the number of GPUs of these nodes."""
    return sum(node["Resources"].get("GPU", 0) for node in nodes)


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
            has = "; ".join(_resource_text(node) for node in nodes) or "no node"
            return (
                f"the bundle `{bundle.name}` needs {_resource_text(bundle.resources)}, which no "
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


def seated(group: PlacementGroup, seat: Seat) -> dict[str, Any]:
    """Returns the Ray options of an actor in this seat."""
    return {
        "num_cpus": seat.resources["CPU"],
        "num_gpus": seat.resources.get("GPU", 0),
        "scheduling_strategy": PlacementGroupSchedulingStrategy(
            group,
            placement_group_bundle_index=seat.bundle,
            placement_group_capture_child_tasks=True,
        ),
    }


def _on_own_node(bundles: int) -> dict[str, Any]:
    """Returns the options of a placement group that place bundles where `run_nodes` allows it."""
    if not is_own():
        return {}
    mine = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
    return {"bundle_label_selector": [mine] * bundles}


def _resource_text(resources: Resources) -> str:
    return ", ".join(
        f"{resources.get(kind, 0):g} {word}" for kind, word in (("CPU", "cores"), ("GPU", "GPUs"))
    )


def start_ray(options: dict[str, Any]) -> None:
    """Connects to Ray or starts it, with retries: Ray gives its own processes 30 s, which is too
    short on a busy machine."""
    deadline = time.monotonic() + RAY_START.seconds
    while True:
        try:
            ray.init(**options)
            return
        except Exception as error:
            ray.shutdown()
            joins = options["address"] != "local"
            if not joins:
                _kill_children()  # a failed start leaves its processes behind
            if time.monotonic() > deadline or joins:
                where = options["address"] if joins else "this machine"
                remedy = "" if joins else f"; {RAY_START.remedy}"
                raise TeamError(f"Ray at {where} did not start: {error}{remedy}") from error


def _kill_children() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
