"""Placement of a run's actors: one placement group, which holds all of them or none.

`engine.training.seats` has the bundles of resources that it consists of.

Invariant: a placement that can never succeed is refused at once, with the bundle that does not fit
and the cluster's resources; for resources that others hold it waits, with a name and a deadline.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.util.placement_group import PlacementGroup, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from engine.config import deadlines
from engine.config.compute import ComputeConfig
from engine.config.deadlines import RAY_START
from engine.config.schema import RunConfig
from engine.preload.environment import use_setup_worker
from engine.resources.machine_cores import machine_cores
from engine.resources.ray_folder import remove_ray_folder
from engine.run.own_ray import OwnRay, is_own, ray_settings, run_nodes
from engine.run.waits import TeamError, Waiting
from engine.training.seats import Bundle, Seat, misfit, resource_text, seats_of


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
        free = resource_text(ray.available_resources())
        raise TeamError(
            f"waited {compute.placement_seconds:.0f} s for the {name}; the cluster has "
            f"{resource_text(ray.cluster_resources())}, of which {free} are free: end "
            "what else runs there, or raise compute.placement_seconds"
        )
    return group


def gpus_of(nodes: Sequence[dict[str, Any]]) -> float:
    """Returns the number of GPUs of these nodes."""
    return sum(node["Resources"].get("GPU", 0) for node in nodes)


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
