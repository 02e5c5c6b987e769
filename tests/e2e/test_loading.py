"""Tests of what pages show while the server is slow and when it refuses: log, charts, runs.

Responses are delayed or replaced on their way to the browser, except the server's own for an
expired session and for a deleted run.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import SAMPLE
from tests.helpers.site import SampleRun
from webapp.experiments.models import Run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LINES, SERIES = "**/api/v1/runs/*/logs?*", "**/api/v1/runs/*/metrics?*"
LOG_EVERY_MS, LIST_EVERY_MS = 2_000, 5_000


@pytest.fixture
def page(window, faults):
    faults.expected = ("Failed to load resource",)
    page = window("about:blank")
    page.clock.install()
    return page


def hold(page, address):
    """Holds requests to the address; returns a function that releases them."""
    held = []
    page.route(address, lambda route: held.append(route))

    def release():
        for route in held:
            route.continue_()
        page.unroute(address)

    return release


def refuse(page, address, status):
    page.route(address, lambda route: route.fulfill(status=status, json={"status": status}))


def part(page, name):
    return page.locator(f'[data-part="{name}"]')


def test_the_log_says_that_it_loads_until_its_lines_are_there(page, run, log):
    run.feed(log)
    release = hold(page, LINES)
    page.goto(f"/runs/{run.run.pk}/log/")
    expect(page.get_by_text("Loading log…")).to_be_visible()
    expect(part(page, "log")).to_have_attribute("aria-busy", "true")
    expect(page.get_by_text("No log lines yet.")).to_be_hidden()
    release()
    expect(part(page, "log")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_text("Loading log…")).to_be_hidden()
    page.get_by_label("Search log").fill("no line says this")
    expect(page.get_by_text("No matching lines.")).to_be_visible()


@pytest.mark.parametrize(
    ("status", "text", "state"),
    [
        (403, "You do not have access. Ask an owner of the workspace", "not available"),
        pytest.param(404, "It no longer exists", "not available", marks=pytest.mark.large),
        (500, "The server answered 500. Retrying automatically.", "reconnecting"),
    ],
)
def test_the_log_says_why_it_cannot_be_loaded_and_tries_again(page, run, log, status, text, state):
    run.feed(log)
    refuse(page, LINES, status)
    page.goto(f"/runs/{run.run.pk}/log/")
    problem = part(page, "error")
    expect(problem).to_contain_text(text)
    expect(part(page, "stream")).to_have_text(state)
    expect(part(page, "log")).to_have_attribute("aria-busy", "false")
    page.unroute(LINES)
    if status == 500:
        page.clock.fast_forward(LOG_EVERY_MS)
    else:
        problem.get_by_role("button", name="Try again").click()
    expect(problem).to_be_hidden()
    expect(part(page, "stream")).to_have_text("live")


@pytest.mark.large
def test_the_log_reports_a_deleted_run_and_a_signed_out_user(page, run, log):
    run.feed(log)
    page.goto(f"/runs/{run.run.pk}/log/")
    expect(part(page, "stream")).to_have_text("live")
    cookies = page.context.cookies()
    page.context.clear_cookies(name="sessionid")
    page.clock.fast_forward(LOG_EVERY_MS)
    expect(part(page, "error")).to_contain_text("You are signed out")
    page.context.add_cookies(cookies)
    part(page, "retry").click()
    expect(part(page, "error")).to_be_hidden()
    Run.objects.filter(pk=run.run.pk).delete()
    page.clock.fast_forward(LOG_EVERY_MS)
    expect(part(page, "error")).to_contain_text("It no longer exists")


@pytest.mark.large
@pytest.mark.parametrize("where", ["/charts/?run={0}", "/compare/?run={0}&run={1}"])
def test_charts_and_comparisons_say_that_they_load_and_why_they_cannot(page, run, log, where):
    run.feed(log)
    other = SampleRun(SAMPLE)
    address = where.format(run.run.pk, other.run.pk)
    release = hold(page, SERIES)
    page.goto(address)
    expect(page.get_by_text("Loading charts…")).to_be_visible()
    expect(part(page, "charts")).to_have_attribute("aria-busy", "true")
    release()
    page.locator('[data-metric="solved"][data-points]').wait_for()
    expect(page.locator('[data-metric="solved"]')).to_have_attribute("aria-busy", "false")
    expect(part(page, "charts")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_text("Loading charts…")).to_have_count(0)
    for status, text in ((403, "You do not have access"), (500, "The server answered 500")):
        refuse(page, SERIES, status)
        page.goto(address)
        note = part(page, "connection")
        expect(note).to_contain_text(f"The charts could not be loaded. {text}")
        expect(page.get_by_text("Loading charts…")).to_be_hidden()
        page.unroute(SERIES)
        note.get_by_role("button", name="Try again").click()
        page.locator('[data-metric="solved"][data-points]').wait_for()
        expect(note).to_be_hidden()


def test_a_list_that_cannot_be_refreshed_reports_it_and_retries(page, run):
    page.goto("/")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    refuse(page, "**/", 500)
    page.clock.fast_forward(LIST_EVERY_MS)
    note = part(page, "listError")
    expect(note).to_contain_text("The server answered 500")
    expect(rows).to_have_count(1)
    page.unroute("**/")
    note.get_by_role("button", name="Try again").click()
    expect(note).to_have_count(0)
    expect(part(page, "list")).not_to_have_attribute("aria-busy", "true")


THREAD = "**/comments/?*"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        pytest.param(403, "You do not have access", marks=pytest.mark.large),
        pytest.param(404, "It no longer exists", marks=pytest.mark.large),
        pytest.param(500, "The server answered 500.", marks=pytest.mark.large),
        (None, "The server is not reachable."),
    ],
)
def test_comments_say_that_they_load_and_why_they_cannot(page, run, status, text):
    # Without the stream, whose notice renews the thread too: here the button alone does.
    page.route_web_socket("**/stream", lambda socket: None)
    release = hold(page, THREAD)
    page.goto(f"/runs/{run.run.pk}/")
    card = page.locator("#comments")
    expect(card).to_have_attribute("aria-busy", "true")
    expect(card.get_by_text("Loading comments…")).to_be_visible()
    release()
    expect(card.get_by_text("No comments yet.")).to_be_visible()
    expect(card).not_to_have_attribute("aria-busy", "true")
    if status is None:
        page.route(THREAD, lambda route: route.abort())
    else:
        refuse(page, THREAD, status)
    page.reload()
    note = card.locator('[data-part="listError"]')
    expect(note).to_contain_text(f"Comments could not be loaded. {text}")
    expect(card.get_by_text("Loading comments…")).to_have_count(0)
    page.unroute(THREAD)
    note.get_by_role("button", name="Try again").click()
    expect(card.get_by_text("No comments yet.")).to_be_visible()
    expect(note).to_have_count(0)


@pytest.mark.large
def test_charts_of_a_run_name_the_cause_and_retry(page, run, log):
    run.feed(log)
    refuse(page, SERIES, 500)
    page.goto(f"/runs/{run.run.pk}/")
    message = page.locator('[data-metric="reward"] .none')
    text = "The charts could not be loaded. The server answered 500. Retrying automatically."
    expect(message).to_have_text(text)
    page.unroute(SERIES)
    page.locator('[data-metric="reward"][data-points]').wait_for()


@pytest.mark.large
def test_compared_trees_name_the_cause_and_are_loaded_again(page, run, log):
    events = list(log)
    run.feed(events)
    trees = [event.tree for event in events if event.kind == "tree.open"][-2:]
    refuse(page, "**/api/v1/runs/*/trees/*", 500)
    chosen = "&".join(f"tree={run.run.pk}:{tree}" for tree in trees)
    page.goto(f"/compare/trees/?{chosen}")
    note = part(page, "error")
    text = "The trees could not be loaded. The server answered 500."
    expect(note).to_contain_text(text)
    expect(page.get_by_text("Loading…")).to_be_hidden()
    page.unroute("**/api/v1/runs/*/trees/*")
    note.get_by_role("button", name="Try again").click()
    expect(page.locator(".tree-pair canvas").first).to_be_visible()
    expect(note).to_be_hidden()


@pytest.mark.large
def test_trees_of_an_older_step_name_the_cause_and_are_loaded_again(page, run, log):
    run.feed(log)
    steps = "**/api/v1/runs/*/steps/*/trees?*"
    refuse(page, steps, 500)
    page.goto(f"/runs/{run.run.pk}/#step=1")
    box = part(page, "noTrees")
    expect(box).to_contain_text("Trees of step 1 could not be loaded")
    expect(box).to_contain_text("The server answered 500.")
    page.unroute(steps)
    box.get_by_role("button", name="Try again").click()
    expect(part(page, "stage")).to_be_visible()
    expect(box).to_be_hidden()
