"""Ray nodes for tests, and one node that all processes of a suite share."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from engine.preload.environment import SETUP_WORKER
from engine.resources.ray_folder import write_private
from engine.run.own_ray import LOOPBACK, enter_environment, own_environment, ray_settings
from tests.helpers.waiting import eventually

OTHERS_SECONDS = 900.0
"""Deadline in seconds for the other processes of a suite to leave its Ray."""

BARE = {
    "include_dashboard": False,
    "include_log_monitor": False,
    "no_monitor": True,
    "setup_worker_path": str(SETUP_WORKER),
    "node_ip_address": LOOPBACK,
}
"""Options of a node without the services that no test uses, each of which would be a process that
imports Ray; the node sets up its workers as one that an engine starts does, and is closed to the
network as that one is."""


@contextmanager
def closed_to_others(folder: Path) -> Iterator[None]:
    """Makes every Ray that this process starts or joins in the block one on the loopback interface
    with the token of this folder, which is made if it has none. Other processes with the folder
    have the same."""
    token = folder / "ray.token"
    with _exclusively(folder / "ray.lock"):
        if not token.exists():
            write_private(token, secrets.token_hex(32))
    os.environ |= ray_settings()
    restore = enter_environment(own_environment(token))
    try:
        yield
    finally:
        restore()


@contextmanager
def shared_ray(folder: Path) -> Iterator[str]:
    """Yields the address of the Ray node that all callers with this folder share. The first caller
    starts it and, at the end, waits for those that joined; a later caller starts another."""
    address = folder / "ray.address"
    with (folder / "ray.users").open("w") as users:
        with _exclusively(folder / "ray.lock"):
            if joined := address.exists():
                fcntl.flock(users, fcntl.LOCK_SH)
            else:
                cluster = _started()
                address.write_text(cluster.address)
            text = address.read_text()
        try:
            yield text
        finally:
            if not joined:
                with _exclusively(folder / "ray.lock"):
                    address.unlink()
                eventually(lambda: _is_free(users), "others to end with this Ray", OTHERS_SECONDS)
                cluster.shutdown()


def _started():
    from ray.cluster_utils import Cluster

    return Cluster(initialize_head=True, head_node_args={"num_cpus": 32, **BARE})


@contextmanager
def _exclusively(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_free(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
