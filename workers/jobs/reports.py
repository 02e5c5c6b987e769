"""Checks and comparisons of datasets, done alongside the runs of a worker: one at a time.

A check runs every reference in the sandbox, in processes of the engine's own
(`python -m engine problems`). It waits for the engine (until the report's deadline) and for the
worker's end, in which case the report is given back. A report that is cancelled or deleted ends
within `renew_seconds`.

Invariant: no engine outlives the report that it was started for.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from typing import IO, Any

from django.utils import timezone

from engine.config.deadlines import JOB_LEASE
from engine.resources.machine_cores import machine_cores
from webapp.artifacts.store import local_path
from webapp.datasets import reports
from webapp.datasets.models import DatasetReport
from webapp.disk import cause_of
from workers.jobs.job_thread import JobThread, renew_seconds
from workers.processes import family, kill_all
from workers.runs.active_runs import closing
from workers.runs.engine_environment import engine_environment
from workers.runs.engine_process import limited
from workers.runs.engine_watch import explained, memory_limits
from workers.settings import work_directory

logger = logging.getLogger(__name__)

_TAIL_BYTES = 2000
# Exit codes. 0: no findings; 1: findings; 2: the engine refused.
_RESULT_CODES = (0, 1)


class CheckFailed(Exception):
    """The engine returned no result; the message says why."""


class ReportJob(JobThread):
    def do_one(self) -> bool:
        report = reports.take_report()
        if report is None:
            return False
        self.work(report)
        return True

    def work(self, report: DatasetReport) -> None:
        """Completes or fails a report that this worker has taken."""
        logger.info("report %s: %s of %s", report.pk, report.kind, report.version)
        try:
            _run_report(report)
        except reports.ReportLost:
            logger.warning(
                "report %s: another worker has it, or it was deleted; %s",
                report.pk,
                JOB_LEASE.remedy,
            )
        except (CheckFailed, OSError, ValueError) as error:
            _fail(report, cause_of(error))


def _fail(report: DatasetReport, cause: str) -> None:
    logger.warning("report %s: %s", report.pk, cause)
    try:
        reports.fail(report, cause)
    except reports.ReportLost:
        logger.warning("report %s: it was deleted", report.pk)


def _run_report(report: DatasetReport) -> None:
    first = local_path(report.version.artifact_id)
    if report.kind == DatasetReport.Kind.VALIDATION:
        programs = max(1, machine_cores() // 2)  # the rest is for the run that is under way
        arguments = ["check", str(first), "--progress", "--workers", str(programs)]
        complete = reports.complete_validation
    else:
        second = local_path(report.other.artifact_id)
        arguments = ["overlap", str(first), str(second), "--threshold", str(report.threshold)]
        complete = reports.complete_overlap
    result = _engine_result(report, [*arguments, "--format", "grove", "--json"])
    if result is not None:
        complete(report, result)


def _engine_result(report: DatasetReport, arguments: list[str]) -> Any:
    """Returns the engine's result; None if this worker shuts down first."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        engine = subprocess.Popen(
            limited([sys.executable, "-m", "engine", "problems", *arguments], memory_limits()),
            cwd=work_directory(),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=engine_environment(),
            start_new_session=True,
        )
        try:
            if not _wait(engine, report, stderr):
                reports.give_back(report)
                return None
        finally:
            if engine.poll() is None:
                kill_all(family(engine.pid))
                engine.wait()
        if engine.returncode not in _RESULT_CODES:
            cause = _tail(stderr) or f"the engine ended with {engine.returncode}"
            raise CheckFailed(explained(cause))
        stdout.seek(0)
        try:
            return json.load(stdout)
        except ValueError as error:
            what = "its result is cut off: the disk of the worker's temporary files may be full"
            raise CheckFailed(f"{what} ({_tail(stderr) or error})") from None


def _wait(engine: subprocess.Popen[bytes], report: DatasetReport, stderr: IO[bytes]) -> bool:
    """Waits until the engine ends; returns False if the worker shuts down first."""
    renewed = time.monotonic()
    while engine.poll() is None:
        if closing.wait(0.05):
            return False
        if timezone.now() > report.deadline:
            seconds = reports.seconds_for(report)
            raise CheckFailed(
                f"it did not finish within {seconds:.0f} s; split the dataset, or have the "
                f"operator {reports.late_remedy(report)}"
            )
        if time.monotonic() - renewed > renew_seconds():
            reports.renew(report, _progress(stderr))
            renewed = time.monotonic()
    return True


def _progress(stderr: IO[bytes]) -> int:
    for line in reversed(_tail(stderr).splitlines()):
        if line.startswith('{"done"') and line.endswith("}"):
            return int(json.loads(line)["done"])
    return 0


def _tail(stderr: IO[bytes]) -> str:
    # Read by position: the engine writes on through the same offset.
    size = os.fstat(stderr.fileno()).st_size
    data = os.pread(stderr.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    return data.decode("utf-8", "replace").strip()
