"""Reports on datasets, checks and overlaps: requested by people, executed by workers.

Invariants: the row is the truth, there is no message: a worker takes a queued report, or a lost
worker's, under a lease that it renews; a worker that lost its lease is refused (`ReportLost`). The
results of a check are written in one transaction. Workspaces take turns: however many reports one
has queued, another's report waits only for the running ones, each of which ends at its deadline
(`settings.DATASET_CHECK_SECONDS` at most), or when it is cancelled or deleted.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from engine.config.deadlines import JOB_LEASE, PATIENCE, PROBLEM_CHECK
from engine.config.errors import printable
from webapp.accounts.models import User
from webapp.datasets.errors import refused
from webapp.datasets.models import DatasetProblem, DatasetReport, DatasetVersion
from webapp.projects.turns import last_turn
from webapp.server_paths import relative

MOST_ATTEMPTS = 3
MAX_LISTED = 2000
"""Overlaps that a report lists; it counts all of them."""
_WORKSPACE = "version__dataset__project__workspace"
_BASE_PROBLEMS = 6
"""The start of a check has the time of so many problems."""
_LOST = f"its workers were lost repeatedly; {JOB_LEASE.remedy}"
State = DatasetReport.State
Kind = DatasetReport.Kind
Check = DatasetProblem.Check


class ReportLost(Exception):
    """Raised when another worker has the report, or it was deleted."""


def request_validation(version: DatasetVersion, user: User) -> DatasetReport:
    """Returns the check of a version that is queued or running, or queues a new one.

    Raises:
        DatasetRefused: its problems are not stored here.
    """
    _refuse_unstored(version)
    with transaction.atomic():
        DatasetVersion.objects.select_for_update(no_key=True).get(pk=version.pk)
        open_one = version.reports.filter(kind=Kind.VALIDATION, state__in=_OPEN).first()
        return open_one or version.reports.create(kind=Kind.VALIDATION, created_by=user)


def request_overlap(
    version: DatasetVersion, other: DatasetVersion, threshold: float, user: User
) -> DatasetReport:
    """Returns the overlap of `version` with `other` that was requested before, or queues a new one.

    Raises:
        DatasetRefused: the problems of one are not stored here.
    """
    for one in (version, other):
        _refuse_unstored(one)
    fields = {"kind": Kind.OVERLAP, "other": other, "threshold": threshold}
    existing = version.reports.filter(**fields).exclude(state=State.FAILED).first()
    return existing or version.reports.create(**fields, created_by=user)


def take_report() -> DatasetReport | None:
    """Takes a report that is queued, or whose worker was lost, under a lease of the caller."""
    now = timezone.now()
    with transaction.atomic():
        due = Q(state=State.QUEUED) | Q(state=State.RUNNING, lease_expires__lt=now)
        report = (
            DatasetReport.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(due)
            .order_by(last_turn(DatasetReport, _WORKSPACE).asc(nulls_first=True), "created", "pk")
            .first()
        )
        if report is None:
            return None
        report.fencing += 1
        if report.fencing > MOST_ATTEMPTS:
            _end(report, State.FAILED, error=_LOST)
            return None
        report.state, report.started, report.done = State.RUNNING, now, 0
        report.deadline = now + timedelta(seconds=seconds_for(report))
        report.lease_expires = now + timedelta(seconds=JOB_LEASE.seconds)
        report.save()
    return report


def seconds_for(report: DatasetReport) -> float:
    """Returns the time limit of a report, in seconds."""
    problems = report.version.statistics["problems"]
    return min(settings.DATASET_CHECK_SECONDS, (_BASE_PROBLEMS + problems) * PROBLEM_CHECK.seconds)


def late_remedy(report: DatasetReport) -> str:
    """Returns what the operator can do about a report that has taken its time limit."""
    if seconds_for(report) < settings.DATASET_CHECK_SECONDS:
        return f"raise {PROBLEM_CHECK.variable} or {PATIENCE}"
    return "raise GROVE_CHECK_MINUTES"


def renew(report: DatasetReport, done: int) -> None:
    """Renews the lease and records the progress."""
    lease = timezone.now() + timedelta(seconds=JOB_LEASE.seconds)
    if not _leased(report).update(lease_expires=lease, done=done):
        raise ReportLost


@transaction.atomic
def cancel(report: DatasetReport, by: User) -> None:
    """Cancels a report that is queued or running; one that has ended is unchanged. Its worker stops
    the engine when it renews its lease."""
    open_ones = DatasetReport.objects.filter(pk=report.pk, state__in=_OPEN)
    if locked := open_ones.select_for_update(no_key=True, of=("self",)).first():
        _end(locked, State.FAILED, error=f"it was cancelled by {by.username}")


def give_back(report: DatasetReport) -> None:
    """Requeues the report of a worker that shuts down; another one restarts it."""
    _leased(report).update(state=State.QUEUED, lease_expires=None, done=0, fencing=F("fencing") - 1)


@transaction.atomic
def complete_validation(report: DatasetReport, output: dict[str, Any]) -> None:
    """Stores the output of `engine problems check --json`. Raises `ReportLost`."""
    report = _locked(report)
    version = DatasetVersion.objects.select_for_update(no_key=True).get(pk=report.version_id)
    results = {row["id"]: (Check.FAILED, _check_reason(row)) for row in output["failed"]}
    for row in output["unverified"]:
        judged = row["verdict"] == "no_program"
        results[row["id"]] = (Check.UNVERIFIED if judged else Check.FAILED, _check_reason(row))
    results = {printable(name): result for name, result in results.items()}
    rows = list(version.problems.only("pk", "problem"))
    for row in rows:
        row.check_state, row.check_reason = results.get(row.problem, (Check.PASSED, ""))
    DatasetProblem.objects.bulk_update(rows, ["check_state", "check_reason"], batch_size=500)
    counts = {
        state.value: sum(row.check_state == state for row in rows)
        for state in (Check.PASSED, Check.FAILED, Check.UNVERIFIED)
    }
    version.faulty = counts["failed"]
    version.save(update_fields=["faulty"])
    report.result = {"tests": output["totals"]["tests"], **counts, "cuts": output.get("cuts", [])}
    report.done = len(rows)
    _end(report, State.DONE)


@transaction.atomic
def complete_overlap(report: DatasetReport, output: dict[str, Any]) -> None:
    """Stores the output of `engine problems overlap --json`. Raises `ReportLost`."""
    report = _locked(report)
    overlaps = [
        {**one, "first": printable(one["first"]), "second": printable(one["second"])}
        for one in output["overlaps"][:MAX_LISTED]
    ]
    report.result = {
        "problems": output["problems"],
        "overlapping": output["overlapping"],
        "overlaps": overlaps,
    }
    report.done = output["problems"]
    _end(report, State.DONE)


@transaction.atomic
def fail(report: DatasetReport, error: str) -> None:
    """Marks the report as failed. Raises `ReportLost`."""
    _end(_locked(report), State.FAILED, error=relative(printable(error))[:4000])


def _end(report: DatasetReport, state: str, error: str = "") -> None:
    report.state, report.error, report.finished = state, error, timezone.now()
    report.lease_expires = None
    report.save()


def _locked(report: DatasetReport) -> DatasetReport:
    row = _leased(report).select_for_update(no_key=True).first()
    if row is None:
        raise ReportLost
    return row


def _leased(report: DatasetReport) -> Any:
    return DatasetReport.objects.filter(pk=report.pk, fencing=report.fencing, state=State.RUNNING)


def _check_reason(row: dict[str, Any]) -> str:
    verdict = row["verdict"].replace("_", " ")
    return printable(f"{verdict}, {row['passed']:.0%} of its tests pass: {row['reason']}")[:1000]


def _refuse_unstored(version: DatasetVersion) -> None:
    if version.artifact_id is None:
        reason = f"the problems of {version} are not stored here: upload them as a dataset"
        raise refused("version", str(version), reason, 409)


_OPEN = (State.QUEUED, State.RUNNING)
