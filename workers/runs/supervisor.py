"""Supervisor of one run: holds its lease, watches its engine, ships its events, ends it.

Invariants:
- The supervisor of a run holds its lease. Once the lease is lost it touches nothing any more,
  least of all the engine: the next supervisor adopts it.
- A run's last event is stored before its final state is.
- An engine that exceeds what the operator allows it (`EngineWatch`) is killed, and its run failed.
- A database failure stops nothing: the engine keeps running, and its lease is renewed.

The loop waits for the engine's exit, for events, for a stop request (read at every renewal of
the lease) and for the worker's shutdown, in which case the engine makes a checkpoint and the run
is given back, so that the next worker resumes it.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event as Flag

import psycopg
from django.db import DataError, Error, connection

from engine.config import tracing
from engine.config.deadlines import ENGINE_STOP, RUN_LEASE
from engine.events import vocabulary as ev
from engine.resources.ray_folder import remove_ray_folder
from webapp.experiments import services
from webapp.experiments.models import Run
from webapp.experiments.scheduling import leases
from webapp.registry.evaluations import record_figures
from workers import metrics
from workers.runs import engine_process as ep
from workers.runs.draft_shipper import DraftShipper
from workers.runs.engine_parent import EXIT_FILE
from workers.runs.engine_process import EngineProcess
from workers.runs.engine_watch import EngineWatch, explained, memory_limits
from workers.runs.log_shipper import Shipper, restore_log
from workers.runs.recorded import exit_code
from workers.runs.restart_policy import RESTART_PAUSE_SECONDS, RestartPolicy
from workers.runs.run_files import (
    append_event,
    prepare_directory,
    register_weights,
    run_directory,
)

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.1
NO_ROOM_BYTES = 1 << 16
"""Less is a full disk: a file takes whole blocks."""
DATABASE_ERRORS = (Error, psycopg.Error)
PERMANENT_ERRORS = (DataError, psycopg.DataError)


class RunSupervisor:
    """The supervisor of one run in one worker. `closing` is set when the worker is to end."""

    def __init__(
        self,
        run_id: uuid.UUID,
        fencing: int,
        closing: Flag,
        command: ep.EngineCommand,
        restart_pause: float = RESTART_PAUSE_SECONDS,
    ):
        self.run_id = run_id
        self.fencing = fencing
        self.run_dir = run_directory(run_id)
        self.closing = closing
        self.command = command
        self.restarts = RestartPolicy(restart_pause)
        self.engine: EngineProcess | None = None
        self.watch: EngineWatch
        self.shipper: Shipper
        self.drafts: DraftShipper
        self.stop_requested = False
        self._traceparent = ""
        self._exceeded = ""
        """Limit for which the engine was killed."""
        self._renewed = 0.0
        self._stop_deadline: float | None = None

    def supervise(self) -> None:
        """Supervises the run until it has ended, or this worker shuts down.

        Raises:
            LeaseLost: another worker has the run.
        """
        self._retry_until_done(self._attach)
        while self.engine is not None:
            if self.closing.is_set():
                return self._release()
            code = self.engine.poll()
            self._retry_until_done(self._tick)
            if code is not None:
                self._retry_until_done(lambda code=code: self._after_exit(code))
            else:
                self.closing.wait(POLL_SECONDS)

    # Beginning

    def _attach(self) -> None:
        """Adopts the running engine, handles one that ended unobserved, or starts one."""
        run = Run.objects.select_related("dataset_version").get(pk=self.run_id)
        self.stop_requested = run.stop_requested
        self._traceparent = run.traceparent
        prepare_directory(run, self.run_dir, self._while_renewing_lease)
        if hasattr(run, "search"):
            self.command = ep.search_command(self.command)
        self.engine = EngineProcess.adopt(self.run_dir)
        if self.engine is None:
            restore_log(self.run_id, self.run_dir)
        self.shipper = Shipper(self.run_id, self.fencing, self.run_dir)
        self.drafts = DraftShipper(self.run_id, self.run_dir)
        if self.engine is not None:
            logger.info("run %s: adopted engine %s", self.run_id, self.engine.pid)
            self.watch = EngineWatch(self.engine, run.run_state, run.waiting_name)
            self._record_engine()
        elif (
            run.run_state is not ev.RunState.QUEUED
            and (code := exit_code(self.run_dir)) is not None
        ):
            self._ship_all()
            self._after_exit(code)
        elif self.stop_requested:
            self._ship_all()
            self._finish(ev.RunState.STOPPED)
        else:
            queued = run.run_state is ev.RunState.QUEUED
            self._start("" if queued else "the engine was lost with its worker")

    def _while_renewing_lease(self, work: Callable[[], object]) -> None:
        """Does `work`, which may take long and makes no queries, while renewing the lease."""
        with ThreadPoolExecutor(1) as helper:
            done = helper.submit(work)
            while wait([done], renew_seconds()).not_done:
                leases.renew_lease(self.run_id, self.fencing, RUN_LEASE.seconds)
            done.result()

    def _start(self, reason: str) -> None:
        """Starts the engine; `reason` is logged in the run's log if this is a restart."""
        services.mark_starting(self.run_id, self.fencing)
        self._ship_all()
        if reason:
            self._append_event(ev.LogLine(level="warning", message=reason))
            self._ship_all()
        self.drafts.forget()
        self.restarts.engine_started()
        self._stop_deadline = None
        (self.run_dir / EXIT_FILE).unlink(missing_ok=True)
        # A database error after the start leads here again: then the engine is adopted.
        self.engine = EngineProcess.adopt(self.run_dir) or self._launch()
        self.watch = EngineWatch(self.engine)
        logger.info("run %s: started engine %s", self.run_id, self.engine.pid)
        self._record_engine()

    def _launch(self) -> EngineProcess:
        run = str(self.run_id)
        about = {"grove.run.id": run}
        with tracing.span("launch", about, parent=self._traceparent, trace_of=run):
            return EngineProcess.start(self.run_dir, self.command, memory_limits())

    def _record_engine(self) -> None:
        services.record_engine(self.run_id, self.fencing, self.engine.pid, self.engine.started)

    def abandon(self, cause: str) -> None:
        """Fails the run for a cause on the worker's side, not the engine's.

        Raises:
            LeaseLost: another worker has the run.
        """
        leases.renew_lease(self.run_id, self.fencing, RUN_LEASE.seconds)
        if engine := self.engine or EngineProcess.adopt(self.run_dir):
            engine.stop()
            remove_ray_folder(self.run_dir)
        services.mark_failed(self.run_id, self.fencing, cause)

    # While it runs

    def _tick(self) -> None:
        if time.monotonic() - self._renewed >= renew_seconds():
            self._renew()
        self._ship_some()
        self.drafts.ship()
        if not self._exceeded and (exceeded := self.watch.exceeded()):
            logger.warning("run %s: %s", self.run_id, exceeded)
            self._exceeded = exceeded
            self.engine.kill()

    def _renew(self) -> None:
        requests = leases.renew_lease(self.run_id, self.fencing, RUN_LEASE.seconds)
        self._renewed = time.monotonic()
        self.engine.touch_lease()
        self.stop_requested = requests.stop_requested
        if not requests.stop_requested:
            return
        if requests.kill_requested:
            self.engine.kill()
        elif self._stop_deadline is None:
            self.engine.request_stop()
            self._stop_deadline = time.monotonic() + ENGINE_STOP.seconds
        elif time.monotonic() > self._stop_deadline:
            logger.warning("run %s: killed: %s", self.run_id, ENGINE_STOP.passed)
            self.engine.kill()

    def _ship_some(self) -> None:
        while batch := self.shipper.ship():
            self._observe(batch)
            if time.monotonic() - self._renewed >= renew_seconds():
                return

    def _observe(self, batch: list[ev.Event]) -> None:
        for event in batch:
            self.restarts.observe(event)
            if self.engine is not None:
                self.watch.observe(event)

    def _ship_all(self) -> None:
        while batch := self.shipper.ship():
            self._observe(batch)
            if time.monotonic() - self._renewed >= renew_seconds():
                leases.renew_lease(self.run_id, self.fencing, RUN_LEASE.seconds)
                self._renewed = time.monotonic()

    def vital_signs(self) -> dict[str, float]:
        """Returns figures for `workers.metrics`, which reads them from a thread of its own."""
        shipper = getattr(self, "shipper", None)  # until the run is attached there is none
        return {
            "heartbeat_seconds": time.monotonic() - self._renewed if self._renewed else 0.0,
            "unshipped_bytes": float(shipper.unshipped_bytes()) if shipper else 0.0,
        }

    # Ending

    def _after_exit(self, code: int) -> None:
        remove_ray_folder(self.run_dir)  # an engine that was killed leaves it
        self.drafts.clear()
        self._ship_all()
        if code == ep.EXIT_FINISHED:
            register_weights(self.run_id, self.run_dir)
            record_figures(self.run_id)
            self._finish(ev.RunState.FINISHED)
        elif self._exceeded:
            self._fail(self._exceeded)  # it would exceed it again
        elif self.stop_requested:
            self._finish(ev.RunState.STOPPED)
        elif code == ep.EXIT_STOPPED:
            self._start("the engine was stopped from outside")
        elif code == ep.EXIT_REFUSED:
            self._fail(self._cause(code))  # another start would be refused as well
        else:
            self._after_crash(code)

    def _after_crash(self, code: int) -> None:
        cause = self._cause(code)
        logger.warning("run %s: engine crashed (%s): %s", self.run_id, code, cause)
        if not self.restarts.allows_restart(cause):
            return self._fail(cause)
        self._pause(self.restarts.pause())
        if not self.closing.is_set():
            self._start(f"restarted after a crash: {cause}")

    def _cause(self, code: int) -> str:
        return explained(self.restarts.reported_error or _exit_cause(code, self.run_dir))

    def _fail(self, cause: str) -> None:
        if not self.restarts.reported_error:
            tail = ep.log_tail(self.run_dir, 8192)
            self._append_event(ev.ErrorRaised(message=cause, traceback=tail))
        self._finish(ev.RunState.FAILED, cause)

    def _pause(self, seconds: float) -> None:
        self.closing.wait(seconds)
        leases.renew_lease(self.run_id, self.fencing, RUN_LEASE.seconds)

    def _finish(self, state: ev.RunState, cause: str = "") -> None:
        self.drafts.forget()
        self._append_event(ev.RunStateChanged(state=state, reason=cause))
        self._ship_all()
        if state is ev.RunState.FINISHED:
            services.mark_finished(self.run_id, self.fencing)
        elif state is ev.RunState.STOPPED:
            services.mark_stopped(self.run_id, self.fencing)
        else:
            services.mark_failed(self.run_id, self.fencing, cause)
        (self.run_dir / EXIT_FILE).unlink(missing_ok=True)
        self.engine = None
        metrics.ended.labels(state.value).inc()
        logger.info("run %s: %s", self.run_id, state)

    def _append_event(self, payload: ev.Payload) -> None:
        append_event(self.run_id, self.run_dir, payload)

    def _release(self) -> None:
        """Shuts down: the engine makes a checkpoint, the log is shipped, the lease is released."""
        self.engine.request_stop()
        deadline = time.monotonic() + ENGINE_STOP.seconds
        try:
            while self.engine.poll() is None and time.monotonic() < deadline:
                self._try_step(self._tick)
                time.sleep(POLL_SECONDS)
        finally:
            if self.engine.poll() is None:
                if time.monotonic() >= deadline:
                    logger.warning("run %s: killed: %s", self.run_id, ENGINE_STOP.passed)
                self.engine.kill()
                remove_ray_folder(self.run_dir)
        self._try_step(self.drafts.clear)
        self._try_step(self._ship_all)
        self._try_step(lambda: leases.release(self.run_id, self.fencing))
        logger.info("run %s: given back", self.run_id)

    def _retry_until_done(self, step: Callable[[], None]) -> None:
        """Does `step`, retrying while the database is down; the engine's lease is renewed."""
        while not self._try_step(step) and not self.closing.wait(1.0):
            pass

    def _try_step(self, step: Callable[[], None]) -> bool:
        """Does `step`; returns False if the database is down.

        Raises:
            DataError: the database is up, and would refuse the same again.
        """
        try:
            step()
        except PERMANENT_ERRORS:
            raise
        except DATABASE_ERRORS as error:
            logger.warning("run %s: waiting for the database: %s", self.run_id, error)
            connection.close()
            if self.engine is not None:
                self.engine.touch_lease()
            return False
        return True


def renew_seconds() -> float:
    """Returns how often the lease is renewed and requests are read: every 2 s, and more often only
    where `deadlines.RUN_LEASE` is shorter than by default."""
    return min(2.0, RUN_LEASE.seconds * 2 / 15)


def _exit_cause(code: int, run_dir: Path) -> str:
    if code < 0:
        return f"the engine was killed by signal {-code}"
    cause = ep.first_cause(run_dir)
    if shutil.disk_usage(run_dir).free < NO_ROOM_BYTES:
        return f"{os.strerror(errno.ENOSPC)}: {cause}"  # its last words may not have fitted either
    return cause
