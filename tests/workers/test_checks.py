"""A worker runs the references of a dataset in the sandbox, and says what it found."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.builders import a_cast
from tests.datasets import some_problems, stored_version
from webapp.artifacts.store import local_path
from webapp.datasets import reports
from webapp.datasets.models import DatasetReport
from workers.checks import Checks

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
    assert Checks().do_one() and Checks().do_one() and not Checks().do_one()
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
    assert Checks().do_one()
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
    Checks().work(taken)
    report = DatasetReport.objects.get()
    assert report.state == "failed" and "was not done within" in report.error
