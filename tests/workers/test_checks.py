"""Tests that a worker runs a dataset's references in the sandbox and reports the results."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import psutil
import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from tests.helpers.builders import a_cast
from tests.helpers.datasets import some_problems, stored_version
from tests.helpers.large import large_but
from tests.helpers.waiting import eventually, patience
from webapp.artifacts.store import local_path
from webapp.datasets import reports
from webapp.datasets.models import DatasetReport
from webapp.projects.services import create_project
from workers.jobs.reports import ReportJob

pytestmark = pytest.mark.django_db


def test_a_check_and_an_overlap_are_done_one_after_the_other(var_directory):
    cast = a_cast()
    good, wrong, silent = some_problems(3)
    wrong = replace(wrong, reference="def solve(*given):\n    return 'nothing'\n")
    silent = replace(silent, reference="")
    version = stored_version(cast, "trees", [good, wrong, silent])
    other = stored_version(cast, "elms", [replace(good, id="elsewhere")])
    check = reports.request_validation(version, cast.bob)
    overlap = reports.request_overlap(version, other, 0.5, cast.bob)
    assert ReportJob().do_one() and ReportJob().do_one() and not ReportJob().do_one()
    for report in (check, overlap):
        report.refresh_from_db()
        assert (report.state, report.error) == ("done", "")
    assert check.result["passed"] == 1 and check.result["unverified"] == 1
    states = version.problems.order_by("number").values_list("check_state", flat=True)
    assert list(states) == ["passed", "failed", "unverified"]
    assert "of its tests pass" in version.problems.get(number=2).check_reason
    version.refresh_from_db()
    assert version.faulty == 1
    first = overlap.result["overlaps"][0]
    assert (first["first"], first["second"], first["kind"]) == (good.id, "elsewhere", "problem")


def test_a_check_that_cannot_be_done_says_why(var_directory):
    cast = a_cast()
    version = stored_version(cast, "trees")
    report = reports.request_validation(version, cast.bob)
    path = local_path(version.artifact_id)
    path.chmod(0o600)
    path.write_text("{}")
    assert ReportJob().do_one()
    report.refresh_from_db()
    assert report.state == "failed" and "statement" in report.error
    version.refresh_from_db()
    assert version.faulty is None


def test_a_check_ends_at_its_deadline(var_directory):
    cast = a_cast()
    version = stored_version(cast, "trees")
    reports.request_validation(version, cast.bob)
    taken = reports.take_report()
    taken.deadline = timezone.now() - timedelta(seconds=1)
    ReportJob().work(taken)
    report = DatasetReport.objects.get()
    assert report.state == "failed" and "did not finish within" in report.error


def slow_problems(number=200):
    """Each reference runs until the sandbox ends it: the check is not done before it is stopped."""
    endless = "def solve(*given):\n    while True:\n        pass\n"
    return [replace(one, reference=endless) for one in some_problems(number)]


def engines():
    """Child processes of this process with the engine's command line."""
    return {one for one in psutil.Process().children() if "problems" in cmdline(one)}


def cmdline(process):
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


@contextmanager
def under_way(report):
    """A worker's thread, as soon as the engine has started on the report. The engine is stopped, so
    that only who ends it ends it."""
    taken = reports.take_report()
    assert taken.pk == report.pk
    work = threading.Thread(
        target=lambda: (ReportJob().work(taken), connection.close()), daemon=True
    )
    work.start()
    (engine,) = eventually(engines, "an engine")
    family = [engine, *eventually(engine.children, "the engine's children")]
    engine.suspend()
    yield work
    work.join(30 * patience())
    assert not work.is_alive(), "the worker is still at it"
    _, alive = psutil.wait_procs(family, timeout=30 * patience())
    assert not alive and not engines(), "its engine is left"


def cancelled(client, report):
    response = client.post(f"/api/v1/datasets/reports/{report.pk}/cancel")
    assert (response.status_code, response.json()["state"]) == (200, "failed")
    assert response.json()["error"] == "it was cancelled by bob"


def cancelled_on_the_page(client, report):
    page = client.get(reverse("dataset-version", args=[report.version_id])).content.decode()
    assert reverse("cancel-dataset-report", args=[report.pk]) in page
    assert client.post(reverse("cancel-dataset-report", args=[report.pk])).status_code == 302


def deleted(client, report):
    assert client.delete(f"/api/v1/datasets/versions/{report.version_id}").status_code == 204


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("end", large_but([deleted], [cancelled, cancelled_on_the_page, deleted]))
def test_a_check_under_way_ends_with_its_report_and_the_next_one_is_done(
    var_directory, client, end
):
    cast = a_cast()
    client.force_login(cast.bob)
    slow = stored_version(cast, "slow", slow_problems())
    check = reports.request_validation(slow, cast.bob)
    elsewhere = create_project(cast.charlie.memberships.get().workspace, "Elms", "elms")
    theirs = stored_version(replace(cast, project=elsewhere, bob=cast.charlie), "elms")
    late = reports.request_validation(theirs, cast.charlie)
    with under_way(check):
        end(client, check)
    result = DatasetReport.objects.filter(pk=check.pk).first()
    assert result is None or (result.state, result.error) == ("failed", "it was cancelled by bob")
    assert ReportJob().do_one()
    late.refresh_from_db()
    assert late.state == "done"
    if result:  # a repeated request is no error and changes nothing
        assert client.post(f"/api/v1/datasets/reports/{result.pk}/cancel").status_code == 200
        again = reports.request_validation(slow, cast.bob)
        assert again.pk != result.pk and again.state == "queued"


def test_the_operator_bounds_how_long_others_wait(var_directory, settings):
    settings.DATASET_CHECK_SECONDS = 60.0
    cast = a_cast()
    reports.request_validation(stored_version(cast, "trees"), cast.bob)
    before = timezone.now()
    taken = reports.take_report()
    assert before <= taken.deadline - timedelta(seconds=60) <= timezone.now()
