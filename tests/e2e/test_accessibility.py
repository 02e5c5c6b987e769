"""Tests that pages full of data, in each of their states, are accessible and fit the screen.

`test_every_page` visits every address once; here a run has trees, curves, links and exports.
"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import SAMPLE
from tests.e2e.wellness import accessibility_errors
from tests.helpers.site import SampleRun
from webapp.experiments.models import Run
from webapp.exports.models import Export, ExportState

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.large
def test_a_run_with_data_and_what_is_made_of_it(window, run, log):
    page = window(f"/runs/{run.run.pk}/", height=1000, color_scheme="dark")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    results: list[str] = []

    def check(what: str) -> None:
        results.extend(accessibility_errors(page, what))

    page.get_by_role("heading", name="No trees yet").wait_for()
    check("a run without a tree")
    head = run.feed(log)
    page.locator(f'[data-part="stream"][data-seq="{head}"]').wait_for()
    page.locator('[data-part="stage"]').focus()
    page.locator('[data-tool="list"]').click()
    page.locator('[data-part="stage"]').press("Enter")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name="Selection").wait_for()
    panel.get_by_role("heading", name="Credit").wait_for()  # the last part of the node to arrive
    for summary in panel.locator("summary").all():
        summary.click()
    panel.locator(".tokens").wait_for()
    page.locator('[data-tool="menuLabel"]').click()
    check("a node")
    page.get_by_role("button", name="Previous node").click()
    page.get_by_text("Showing the state at event").wait_for()
    check("an earlier moment")
    page.goto(f"/compare/trees/?tree={run.run.pk}:{first_tree(run)}")
    page.get_by_role("heading", name="Best so far over the budget").wait_for()
    check("two trees")
    for path in (
        f"/charts/?run={run.run.pk}",
        f"/runs/{run.run.pk}/about/",
        f"/runs/{run.run.pk}/log/",
        f"/comments/?run={run.run.pk}",
        f"/runs/{run.run.pk}/shares/",
        *compared(run.run),
    ):
        page.goto(path)
        page.locator("h1").wait_for()
        if "charts" in path:
            page.locator("[data-metric] canvas").first.wait_for()
            page.locator("[data-metric] summary").first.click()
        check(path)
    page.get_by_role("button", name="Create link").click()
    check("a link to a comparison")
    page.goto(page.locator("pre").inner_text())
    page.get_by_text("Shared:").wait_for()
    page.get_by_role("heading", name="Differences in settings").wait_for()
    check("a shared comparison")
    page.goto(f"/runs/{run.run.pk}/shares/")
    page.get_by_role("button", name="Create link").click()
    check("a link to a run")
    page.goto(page.locator("pre").inner_text())
    page.get_by_text("Shared:").wait_for()
    page.locator('[data-metric="solved"]').scroll_into_view_if_needed()
    page.locator('[data-metric="solved"] canvas').first.wait_for()
    check("a shared run")
    assert not results, "\n".join(results)


@pytest.mark.large
def test_a_run_that_failed_under_a_long_name(window):
    long = SampleRun(SAMPLE, "a-name-without-a-space-" + "x" * 150)
    long.end("failed", "agent oak: no model in /models/" + "long-name/" * 30)
    page = window(f"/runs/{long.run.pk}/")
    page.get_by_role("alert").wait_for()
    page.get_by_text("The run ended before its first step").wait_for()
    found = accessibility_errors(page, "its page")
    for path in ("/", "/?state=failed", "/?archived=1", f"/runs/{long.run.pk}/log/"):
        page.goto(path)
        page.locator("h1").wait_for()
        found += accessibility_errors(page, path)
    assert not found, "\n".join(found)


def compared(run) -> list[str]:
    """Pages that share a comparison with a second run, while exports are pending and ready."""
    other = a_second_run(run)
    for state in ExportState:
        over = {"error": "the disk is full"} if state is ExportState.FAILED else {}
        of_all = {"project": run.project, "table": "runs", "format": "csv"}
        Export.objects.create(created_by=run.created_by, state=state, **of_all, **over)
    pages = ["/compare/", "/compare/shares/"]
    return ["/exports/"] + [f"{page}?run={run.pk}&run={other.pk}" for page in pages]


def a_second_run(run) -> Run:
    payload = {"config": {**run.config, "seed": 2}, "seed": 2, "created_by": run.created_by}
    return Run.objects.create(experiment=run.experiment, number=2, **payload)


def first_tree(run) -> int:
    return run.run.events.filter(kind="tree.open").order_by("seq").first().tree
