"""What one worker process has to do: the runs that it keeps, and whether it is closing.

One per process. Task threads, the sweep and the shutdown handler meet here.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid

from webapp.experiments.leases import LeaseLost, take_lease
from webapp.experiments.selectors import more_urgent
from workers.keeper import LEASE_SECONDS, Keeper
from workers.settings import engine_command

logger = logging.getLogger(__name__)

closing = threading.Event()
"""Set once, when the worker is to end: engines make checkpoints and runs are given back."""

_keepers: dict[uuid.UUID, Keeper] = {}
_lock = threading.Lock()


def keep_run(run_id: uuid.UUID) -> None:
    """Keep the run until it ends; returns at once if there is nothing to take."""
    if closing.is_set():
        return
    fencing = None
    # A message says that there is work: the most urgent is done first, and the sweep sends the
    # other again.
    if first := more_urgent(run_id):
        fencing = take_lease(first, owner(), LEASE_SECONDS)
        run_id = run_id if fencing is None else first
    fencing = fencing or take_lease(run_id, owner(), LEASE_SECONDS)
    if fencing is None:
        return
    keeper = Keeper(run_id, fencing, closing, engine_command())
    with _lock:
        _keepers[run_id] = keeper
    try:
        keeper.keep()
    except LeaseLost as error:
        logger.warning("%s; its next keeper adopts the engine", error)
    except Exception as error:
        logger.exception("run %s: cannot be kept", run_id)
        keeper.abandon(f"{type(error).__name__}: {error}")
    finally:
        with _lock:
            if _keepers.get(run_id) is keeper:
                del _keepers[run_id]


def kept() -> list[Keeper]:
    """The keepers at work."""
    with _lock:
        return list(_keepers.values())


def owner(pid: int | None = None) -> str:
    """Name of this worker on its leases, or of that with another process id on this machine."""
    return f"{socket.gethostname()}:{pid or os.getpid()}"
