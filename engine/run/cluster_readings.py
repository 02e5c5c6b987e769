"""Readings of all nodes of the Ray cluster: this one directly, every other by a small actor on it.

Nodes are named node0 (where the engine runs), node1, ... in the order in which they were first
seen: a shared run shows its samples to guests, who must not learn names of machines.

Invariant: nothing here waits for another node: a reading returns what the previous one requested,
if it has arrived; a node that does not answer is left out.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, cast

from engine.policy.handles import NodeReaderHandle
from engine.run.node_readings import NodeReader

NODES_EVERY_SECONDS = 30.0
"""Interval between two queries of the cluster's nodes."""


class ClusterReader:
    """Reader of all nodes, for the engine's own process; without Ray it reads only this node."""

    def __init__(self, folder: str | Path = "/", node: NodeReader | None = None):
        self._folder = str(folder)
        self._here = node or NodeReader(folder)
        self._others: dict[str, _Watch] = {}
        self._next_look = 0.0
        self._seen = 0

    def read(self) -> dict[str, float]:
        """Returns readings by `METRIC.NODE`, of a device by `METRIC.NODE:INDEX`."""
        readings = _of_node("node0", self._here.read())
        self._look()
        for watch in self._others.values():
            readings |= _of_node(watch.name, watch.take())
        return readings

    def _look(self) -> None:
        ray: Any = sys.modules.get("ray")  # not imported in a search of one process
        if ray is None or time.monotonic() < self._next_look or not ray.is_initialized():
            return
        self._next_look = time.monotonic() + NODES_EVERY_SECONDS
        from engine.run.own_ray import run_nodes

        mine = ray.get_runtime_context().get_node_id()
        there = [one["NodeID"] for one in run_nodes() if one["NodeID"] != mine]
        self._others = {node: one for node, one in self._others.items() if node in there}
        for node in there:
            if node not in self._others:
                self._seen += 1
                self._others[node] = _Watch(f"node{self._seen}", node, self._folder)


class _Watch:
    """Actor on another node, and its pending call."""

    def __init__(self, name: str, node: str, folder: str):
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.name = name
        there = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        remote_class = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=there)(_Remote)
        self._actor = cast(NodeReaderHandle, remote_class.remote(folder))
        self._pending = self._actor.read.remote()

    def take(self) -> dict[str, float]:
        """Returns the result of the pending call; empty if it is not done or the node is lost."""
        import ray

        done, _ = ray.wait([self._pending], timeout=0)
        if not done:
            return {}
        pending, self._pending = self._pending, self._actor.read.remote()
        try:
            return ray.get(pending)
        except ray.exceptions.RayError:
            return {}


class _Remote:
    """Actor class on another node, where the run directory may not exist."""

    def __init__(self, folder: str):
        self._reader = NodeReader(folder if Path(folder).is_dir() else "/")

    def read(self) -> dict[str, float]:
        return self._reader.read()


def _of_node(node: str, readings: dict[str, float]) -> dict[str, float]:
    by_device = {}
    for name, value in readings.items():
        metric, colon, index = name.partition(":")
        by_device[f"{metric}.{node}{colon}{index}"] = value
    return by_device
