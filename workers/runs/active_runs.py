"""What one worker process has to do: the runs that it keeps, and whether it is closing.

One per process. Task threads, the sweep and the shutdown handler meet here.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid

from webapp.experiments.scheduling.leases import LeaseLost
from webapp.experiments.scheduling.queue import take
from workers.runs.supervisor import LEASE_SECONDS, Keeper
from workers.settings import engine_command

logger = logging.getLogger(__name__)

closing = threading.Event()
"""Set once, when the worker is to end: engines make checkpoints and runs are given back."""

_keepers: dict[uuid.UUID, Keeper] = {}
_lock = threading.Lock()


def keep_run(run_id: uuid.UUID) -> None:
    """Keep what is due until it ends: this run if it was interrupted, else the one whose turn it is
    (`queue.take`), for which the sweep sends another message. Returns at once if nothing is."""
    if closing.is_set():
        return
    taken = take(run_id, owner(), LEASE_SECONDS)
    if taken is None:
        return
    run_id = taken.run_id
    keeper = Keeper(run_id, taken.fencing, closing, engine_command())
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
