"""Tests of the registry in a browser: upload, evaluation, comparison and promotion by two."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.helpers.accessibility import broken_rules
from tests.helpers.builders import a_model_folder
from tests.helpers.chromium import a_context
from webapp.accounts.models import User
from webapp.accounts.services import create_sign_in_link
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.projects.models import Membership, Role
from webapp.registry.evaluations import EvaluationSettings, evaluate, record_figures
from webapp.registry.models import Model, ModelVersion
from webapp.registry.promotion import set_second_pair
from webapp.telemetry.models import Event

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PICTURES = os.environ.get("GROVE_PICTURES")
"""A folder in which to save screenshots of the pages, if set."""


@pytest.fixture
def enter(browser, server, run, faults):
    """Opens a window in which `user` is signed in: enter(user, width, scheme)."""
    contexts = []

    def open_for(user: User, width: int = 1280, scheme: str = "light"):
        context = a_context(
            browser,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            base_url=server.url,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        faults.watch(page, server.url)
        page.goto(create_sign_in_link(user))
        return page

    yield open_for
    for context in contexts:
        context.close()
    assert faults.recorded == []


def look(page, name: str) -> None:
    """Asserts that the page keeps the rules and fits narrow and wide screens."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
    assert broken_rules(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def measured(version: ModelVersion, dataset: DatasetVersion, user: User, value: float) -> None:
    """An evaluation that has reported its metrics."""
    result = evaluate(version, dataset, EvaluationSettings(problems=20), user)
    outcomes = {"pass@1/model": [value] * 20}
    payload = {"step": 0, "split": "test", "contents": [f"{n:016x}" for n in range(20)]}
    Event.objects.create(
        run=result.run, seq=1, time=result.created, kind="eval.outcomes",
        payload={**payload, "outcomes": outcomes},
    )  # fmt: skip
    record_figures(result.run_id)


@pytest.mark.large
def test_a_model_is_uploaded_measured_compared_and_promoted_by_two(enter, run, tmp_path, faults):
    project, owner = run.project, run.user
    mia = User.objects.create_user("mia")
    Membership.objects.create(workspace=project.workspace, user=mia, role=Role.MAINTAINER)
    dataset = DatasetVersion.objects.create(
        dataset=Dataset.objects.create(project=project, name="hard"),
        number=1, spec={"dataset": "generated", "seed": 3}, content_hash="c" * 64,
    )  # fmt: skip

    page = enter(owner)
    page.goto("/models/")
    look(page, "models-empty")
    page.get_by_role("link", name="Add a model").click()
    page.get_by_label("Name").fill("elm")
    folder = a_model_folder(tmp_path / "elm")
    page.get_by_label("Files").set_input_files(
        [path for path in sorted(folder.iterdir()) if path.name != "config.json"]
    )
    faults.expected = ("Failed to load resource",)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("alert").filter(has_text="config.json").wait_for()
    look(page, "new-model-refused")
    assert not Model.objects.exists()
    faults.expected = ()
    page.get_by_label("Files").set_input_files(sorted(folder.iterdir()))
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("heading", name="elm v1").wait_for()

    page.get_by_text("New evaluation").click()
    page.get_by_role("button", name="Evaluate", exact=True).click()
    page.get_by_text("Queued").wait_for()
    page.get_by_text("Edit notes").click()
    page.get_by_label("Notes").fill("Made by **hand**.")
    page.get_by_role("button", name="Save").click()
    page.locator(".prose strong", has_text="hand").wait_for()

    first = ModelVersion.objects.get()
    second = ModelVersion.objects.create(
        model=first.model, number=2, parent=first, path=first.path, sha256="d" * 64, parameters=6
    )
    measured(first, dataset, owner, 0.0)
    measured(second, dataset, owner, 1.0)
    page.reload()
    look(page, "version")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("B is 100.0 points above A").wait_for()
    look(page, "compare-versions")

    page.goto(f"/models/{first.model_id}/")
    set_second_pair(project.workspace, True, owner)
    page.reload()
    page.get_by_text("Set alias").click()
    page.get_by_label("Alias", exact=True).fill("champion")
    page.get_by_label("Version", exact=True).fill("2")
    page.get_by_label("Reason", exact=True).fill("It is better.")
    page.get_by_role("button", name="Request promotion").click()
    page.get_by_text("Another person has to approve it.").wait_for()
    assert page.get_by_role("button", name="Approve").count() == 0

    other = enter(mia, 400, "dark")
    other.goto(f"/models/{first.model_id}/")
    look(other, "model-waiting-400-dark")
    other.get_by_label("Comment").fill("Agreed.")
    other.get_by_role("button", name="Approve").click()
    other.locator(".pill", has_text=re.compile("champion: v2")).first.wait_for()
    other.get_by_text("History").click()
    other.get_by_text("done by mia: Agreed.").wait_for()
    look(other, "model-400-dark")
    other.goto(f"/models/{first.model_id}/versions/2/")
    look(other, "version-400-dark")
