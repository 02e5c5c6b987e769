"""State of one worker process: the runs that it supervises, and whether it is shutting down.

One per process; task threads, the requeue thread and the shutdown handler share it.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid

from engine.config.deadlines import RUN_LEASE
from webapp.experiments.scheduling.leases import LeaseLost
from webapp.experiments.scheduling.queue import take
from webapp.http.log_context import about_run
from workers.runs.engine_watch import explained
from workers.runs.supervisor import RunSupervisor
from workers.settings import engine_command

logger = logging.getLogger(__name__)

closing = threading.Event()
"""Set once, when the worker is to end: engines make checkpoints and runs are given back."""

_supervisors: dict[uuid.UUID, RunSupervisor] = {}
_lock = threading.Lock()


def supervise_run(run_id: uuid.UUID) -> None:
    """Supervises the due run until it ends: this run if it was interrupted, else the next of the
    queue (`queue.take`). The requeue thread sends another message for a run that was not taken.
    Returns at once if none is due."""
    if closing.is_set():
        return
    taken = take(run_id, owner(), RUN_LEASE.seconds)
    if taken is None:
        return
    run_id = taken.run_id
    supervisor = RunSupervisor(run_id, taken.fencing, closing, engine_command())
    with _lock:
        _supervisors[run_id] = supervisor
    try:
        with about_run(run_id):
            supervisor.supervise()
    except LeaseLost as error:
        logger.warning("%s; the next supervisor adopts the engine", error)
    except Exception as error:
        logger.exception("run %s: cannot be supervised", run_id)
        supervisor.abandon(explained(f"{type(error).__name__}: {error}"))
    finally:
        with _lock:
            if _supervisors.get(run_id) is supervisor:
                del _supervisors[run_id]


def active_supervisors() -> list[RunSupervisor]:
    """Returns the active run supervisors."""
    with _lock:
        return list(_supervisors.values())


def owner(pid: int | None = None) -> str:
    """Returns the name of this worker on its leases, or of the worker `pid` on this machine."""
    return f"{socket.gethostname()}:{pid or os.getpid()}"
