"""The environment in which an actor with a model starts."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

import ray

from engine.config.compute import ComputeConfig
from engine.preload.allocator import HUGE_PAGES, SUMS_IN_ORDER

LAUNCHER = Path(__file__).with_name("launcher.py")
SETUP_WORKER = Path(__file__).with_name("setup_worker.py")


def use_setup_worker() -> None:
    """Makes any Ray that this process starts run `SETUP_WORKER` in place of its own program."""
    ray._private.ray_constants.SETUP_WORKER_FILENAME = str(SETUP_WORKER)


def runtime_environment(compute: ComputeConfig) -> dict[str, Any]:
    """Returns Ray's `runtime_env` of an actor with a model.

    The actor is forked from a preloaded process where that is known to work: on Linux, without a
    GPU (its driver does not survive a fork), and where each node of the cluster is this machine,
    with our interpreter and our files.
    """
    variables = dict(SUMS_IN_ORDER) if compute.deterministic else {}
    if not _can_fork():
        return {"env_vars": variables} if variables else {}
    # Libraries read these when they are loaded, which happens before any code of the actor. The
    # threads of OpenBLAS, which would start then, are not used here.
    variables |= HUGE_PAGES | {"OPENBLAS_NUM_THREADS": "1"}
    variables["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(compute.threads_per_agent))
    command = shlex.join([sys.executable, "-I", "-S", str(LAUNCHER)])
    return {"py_executable": command, "env_vars": variables}


def _can_fork() -> bool:
    here = socket.gethostname()
    return (
        sys.platform == "linux"
        and not ray.cluster_resources().get("GPU", 0)
        and all(node["NodeManagerHostname"] == here for node in ray.nodes() if node["Alive"])
    )
