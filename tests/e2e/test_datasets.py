"""Tests of a dataset in the browser: uploaded, parsed, checked by a worker, viewed, refused."""

from __future__ import annotations

import json
import re

import psycopg
import pytest
from django.db import connection

from tests.e2e.relay import Relay
from tests.engine.problems import rows
from tests.helpers.accessibility import broken_rules
from webapp.artifacts.store import storage
from webapp.config.environment import read_artifact_storage
from webapp.datasets.models import DatasetReport, DatasetVersion
from webapp.datasets.parsing import parse
from workers.jobs.reports import ReportJob

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WRONG = {**rows.HUMANEVAL, "task_id": "HumanEval/1000", "canonical_solution": "    return None\n"}
WRONG["prompt"] = rows.HUMANEVAL["prompt"].replace('"""', '"""Twice: ', 1)


@pytest.fixture
def page(window, server, settings):
    """A page of the demo user; its uploads are stored where this process can read them."""
    artifacts = read_artifact_storage({}, server.var / "artifacts")
    settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts}
    return window("/datasets/")


def uploaded(page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.get_by_label("Files").set_input_files([file])
    page.get_by_role("button", name="Upload").click()


def is_well(page, what: str) -> None:
    """Asserts that no rule of WCAG is broken and the page fits a small screen."""
    assert broken_rules(page) == [], what
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), what
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_dataset_is_uploaded_checked_and_looked_at(page):
    lines = [json.dumps(row) for row in (rows.HUMANEVAL, WRONG)]
    uploaded(page, "HumanEval.jsonl", "\n".join(lines).encode())
    page.get_by_role("heading", name="HumanEval v1").wait_for()
    page.get_by_text("Waiting for a worker.").wait_for()
    is_well(page, "a version that waits")
    assert storage().listdir("")[0], "the test and the server keep artifacts in one place"
    assert ReportJob().do_one()
    assert DatasetReport.objects.get().error == ""
    page.get_by_role("link", name="Show failing problems").click()
    (row,) = page.locator("#problems").locator("xpath=../..").locator("tbody tr").all()
    assert "HumanEval/1000" in row.inner_text() and "its tests pass" in row.inner_text()
    page.get_by_text("Runs cannot train on this version.").wait_for()
    is_well(page, "a version that was checked")
    row.get_by_role("link").click()
    page.get_by_role("heading", name="Reference solution").wait_for()
    is_well(page, "a problem")
    page.go_back()
    page.get_by_role("button", name="Save as a new version").click()
    page.get_by_role("heading", name="HumanEval v2").wait_for()
    page.get_by_role("link", name="HumanEval v1").click()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("heading", name="Overlap").wait_for()
    while ReportJob().do_one():
        pass
    page.get_by_role("heading", name=re.compile("[12] of 2")).wait_for()
    is_well(page, "an overlap")


@pytest.mark.large
def test_an_invalid_dataset_is_refused_with_its_reason(page, faults):
    faults.expected = ("Failed to load resource",)
    uploaded(page, "problems.jsonl", b"PK\x03\x04 an archive")
    alert = page.get_by_role("alert").filter(has_text="nothing was saved")
    alert.get_by_text("zip archive").wait_for()
    is_well(page, "a refusal")


@pytest.mark.large
def test_an_upload_that_waits_for_its_turn_shows_its_place_and_goes_on_by_itself(page):
    with psycopg.connect(**connection.get_connection_params()) as others:
        for slot in range(parse.QUEUE.slots):
            others.execute("SELECT pg_advisory_xact_lock(%s, %s)", [parse.QUEUE.lock, slot])
        uploaded(page, "HumanEval.jsonl", json.dumps(rows.HUMANEVAL).encode())
        status = page.get_by_role("status").filter(has_text="in the queue")
        status.wait_for()
        assert status.inner_text() == "Waiting to be read: place 1 of 1 in the queue."
        is_well(page, "an upload that waits")
    page.get_by_role("heading", name="HumanEval v1").wait_for()


PIECE = 4 << 20
"""Bytes per piece that the page sends (static/js/lib/upload.js)."""
PROBLEMS = 25
"""Number of problems, so many that each statement is within the limit of a dataset."""


def big_dataset(file) -> int:
    """Writes problems of two and a half pieces to the file; returns their number."""
    long = "x" * (PIECE * 5 // 2 // PROBLEMS)
    with file.open("w") as lines:
        for number in range(PROBLEMS):
            row = {**rows.HUMANEVAL, "task_id": f"HumanEval/{number}"}
            row["prompt"] = row["prompt"].replace('"""', f'"""{number} {long}', 1)
            lines.write(json.dumps(row) + "\n")
    return PROBLEMS


@pytest.mark.large
def test_an_interrupted_upload_continues_at_the_servers_offset(page, server, faults, tmp_path):
    """The network fails within the second piece."""
    faults.expected = ("Failed to load resource", "ERR_CONNECTION", "foreign request")
    file = tmp_path / "big.jsonl"
    problems = big_dataset(file)
    size = file.stat().st_size
    assert 2 * PIECE < size < 3 * PIECE
    with Relay(server.port, breaks=(PIECE + PIECE // 2,)) as relay:
        page.goto(f"{relay.url}/datasets/")
        page.get_by_label("Files").set_input_files(file)
        page.get_by_role("button", name="Upload").click()
        page.get_by_role("heading", name="big v1").wait_for()
        assert relay.broken == 1
        assert size < relay.sent < size + PIECE, "no piece that had come was sent again"
    version = DatasetVersion.objects.get(dataset__name="big")
    assert version.statistics["problems"] == problems


@pytest.mark.large
def test_an_upload_goes_on_after_a_reload_when_the_file_is_chosen_again(
    page, server, faults, tmp_path
):
    faults.expected = ("Failed to load resource", "ERR_CONNECTION", "foreign request")
    file = tmp_path / "big.jsonl"
    big_dataset(file)
    with Relay(server.port, breaks=(2 * PIECE + PIECE // 4,), stays_down=True) as relay:
        page.goto(f"{relay.url}/datasets/")
        page.get_by_label("Files").set_input_files(file)
        page.get_by_role("button", name="Upload").click()
        page.wait_for_function("() => /7[0-9] %|8[0-9] %/.test(document.body.innerText)")
        page.goto("about:blank")  # otherwise the upload would resume once the network is back
        relay.heal()
        page.goto(f"{relay.url}/datasets/")
        before = relay.sent
        page.get_by_label("Files").set_input_files(file)
        page.get_by_role("button", name="Upload").click()
        page.get_by_role("heading", name="big v1").wait_for()
        assert relay.sent - before < 2 * PIECE, "the first pieces were there"
