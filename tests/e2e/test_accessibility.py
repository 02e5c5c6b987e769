"""No page breaks a rule of WCAG 2.2 AA that axe-core can tell, in light and in dark."""

from __future__ import annotations

import pytest

from tests.browser.accessibility import broken_rules
from webapp.experiments.models import Run
from webapp.exports.models import Export, ExportState

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGES = (
    "/",
    "/runs/new/",
    "/compare/",
    "/models/",
    "/searches/",
    "/searches/new/",
    "/models/new/",
    "/models/compare/",
    "/datasets/",
    "/api/",
    "/account/",
    "/account/app/",
    "/account/password/first/",
    "/account/passkeys/",
    "/tokens/",
    "/workspaces/",
    "/workspaces/demo/",
    "/inbox/",
    "/exports/",
    "/workspaces/demo/audit/",
    "/workspaces/demo/close/",
)


def test_no_page_breaks_a_rule(window, run, log):
    page = window(f"/runs/{run.run.pk}/", height=1000)
    found = {}

    def check(what: str) -> None:
        if broken := broken_rules(page):
            found[what] = broken

    page.get_by_role("heading", name="No tree yet").wait_for()
    check("a run without a tree")
    run.feed(log)
    page.locator('[data-part="stage"]').focus()
    page.locator('[data-tool="list"]').click()
    page.locator('[data-part="stage"]').press("Enter")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name="Why here").wait_for()
    panel.get_by_role("heading", name="Credit").wait_for()  # so all of the node has come
    for summary in panel.locator("summary").all():
        summary.click()
    panel.locator(".tokens").wait_for()
    page.locator('[data-tool="menuLabel"]').click()
    check("a node")
    page.get_by_role("button", name="One node back").click()
    page.get_by_text("You see what was known at event").wait_for()
    check("an earlier moment")
    page.goto(f"/compare/trees/?tree={run.run.pk}:{first_tree(run)}")
    page.get_by_role("heading", name="Best so far over the budget").wait_for()
    check("two trees")
    for path in (
        *PAGES,
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
    page.get_by_role("button", name="Make the link").click()
    check("a link to a comparison")
    page.goto(page.locator("pre").inner_text())
    page.get_by_text("shared with you").wait_for()
    page.get_by_role("heading", name="What differs in the settings").wait_for()
    check("a shared comparison")
    page.context.clear_cookies()
    page.goto("/sign-in/")
    page.locator("h1").wait_for()
    check("to sign in")
    told = [f"{what}: {rule}" for what, rules in found.items() for rule in rules]
    assert not told, "\n".join(told)


def compared(run) -> list[str]:
    """Pages that share a comparison with a second run, while exports are asked for and ready."""
    other = a_second_run(run)
    for state in ExportState:
        over = {"error": "the disk is full"} if state is ExportState.FAILED else {}
        of_all = {"project": run.project, "table": "runs", "format": "csv"}
        Export.objects.create(created_by=run.created_by, state=state, **of_all, **over)
    pages = ["/compare/", "/compare/shares/"]
    return ["/exports/"] + [f"{page}?run={run.pk}&run={other.pk}" for page in pages]


def a_second_run(run) -> Run:
    told = {"config": {**run.config, "seed": 2}, "seed": 2, "created_by": run.created_by}
    return Run.objects.create(experiment=run.experiment, number=2, **told)


def first_tree(run) -> int:
    return run.run.events.filter(kind="tree.open").order_by("seq").first().tree
