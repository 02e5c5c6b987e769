"""The Ray that an engine starts for its run, and which nodes a run may use.

Invariants:
- It listens on the loopback interface alone, as do the processes of its actors, and refuses every
  call without its token. Each start has a token of its own, in a file that only the account of the
  engine can read.
- Actors of a run are placed on this node alone, even if another node joins its Ray. In a cluster
  that a run joins, every node is the operator's, and may be used.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import ray
from ray import _raylet

from engine.config.deadlines import patience
from engine.resources.ray_folder import RayFolder

LOOPBACK = "127.0.0.1"
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # By default Ray runs its workers at nice 15, where any other program starves them.
    "RAY_worker_niceness": "0",
    # Prestarted workers would only import modules: nearly all are forked (engine/preload).
    "RAY_prestart_worker_first_driver": "0",
}
_REGISTER_SECONDS = 240.0
"""The first worker is forked once torch is imported, which can take a minute under load."""
_DEADLINES = {
    # A new node and its agents, until they are reached; then the checks that decide that a node is
    # dead. Not the wait for the first process: it is also what a wrong address or token costs, and
    # a start that fails is repeated (`deadlines.RAY_START`).
    "RAY_raylet_start_wait_time_s": 30.0,
    "RAY_agent_register_timeout_ms": 30_000.0,
    "RAY_health_check_timeout_ms": 10_000.0,
}
"""Deadlines of Ray with its defaults, which are scaled by GROVE_PATIENCE."""


def ray_settings() -> dict[str, str]:
    """Returns the environment of a Ray that an engine starts for itself; variables that the user
    has set win. With patience it includes Ray's own deadlines."""
    factor = patience()
    scaled = {"RAY_worker_register_timeout_seconds": _REGISTER_SECONDS}
    scaled |= _DEADLINES if factor > 1 else {}
    return _SETTINGS | {name: str(round(value * factor)) for name, value in scaled.items()}


class OwnRay:
    """Folder, token and environment of a Ray that this process starts; `close` ends it.

    While it is open the environment of this process, which Ray's processes inherit, is that of
    `own_environment`.
    """

    def __init__(self, run_dir: Path | None = None):
        """Does not start Ray; `options` are for `ray.init`.

        Raises:
            OSError: its folder cannot be created.
        """
        self._open = ExitStack()
        folder = RayFolder(run_dir)
        self._open.callback(folder.close)
        self._open.callback(enter_environment(own_environment(folder.token_file)))
        self.options: dict[str, Any] = {
            # "local": do not join a Ray that someone else started on this machine.
            "address": "local",
            "include_dashboard": False,
            "_temp_dir": str(folder.for_ray),
        }

    def close(self) -> None:
        """Ends Ray and removes its files and its token."""
        ray.shutdown()
        self._open.close()


def own_environment(token_file: Path) -> dict[str, str | None]:
    """Returns the environment of a Ray on the loopback interface with the token of this file.

    It wins over variables that the user has set, which are for another cluster.
    """
    interface = _loopback_interface()
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": None,  # nosec B105: unset, since it would win over the file
        "RAY_AUTH_TOKEN_PATH": str(token_file.absolute()),
        # Whatever its name says, on every system: a node's address is 127.0.0.1, and all of its
        # servers listen on their node's address.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # The exporter of the autoscaler's metrics has no use here, needs no token and has no
        # switch; with an impossible port it does not start.
        "AUTOSCALER_METRIC_PORT": "-1",
        # What learner ranks and vLLM open for each other.
        "GLOO_SOCKET_IFNAME": interface,
        "NCCL_SOCKET_IFNAME": interface,
        "VLLM_HOST_IP": LOOPBACK,
    }


def enter_environment(variables: dict[str, str | None]) -> Callable[[], None]:
    """Sets variables, or removes those that are None, for Ray in this process too, which reads
    them when it is imported; returns a function that restores what was set before."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    return lambda: _set(before)


def run_nodes() -> list[dict[str, Any]]:
    """Returns the nodes, alive, on which actors of this run may be placed: this one, if this
    process has started Ray, else all nodes of the cluster."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if not is_own():
        return nodes
    mine = ray.get_runtime_context().get_node_id()
    return [node for node in nodes if node["NodeID"] == mine]


def is_own() -> bool:
    """Whether this process has started the Ray to which it is connected."""
    node = ray._private.worker._global_node
    return node is not None and node.ray_init_cluster


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    constants = ray._private.ray_constants
    constants.ENABLE_RAY_CLUSTER = constants.env_bool(
        constants.ENABLE_RAY_CLUSTERS_ENV_VAR, not constants.IS_WINDOWS_OR_OSX
    )
    raylet: Any = _raylet  # compiled: its names are known at run time alone
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def _loopback_interface() -> str:
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address == LOOPBACK for a in addresses):
            return name
    return "lo"
