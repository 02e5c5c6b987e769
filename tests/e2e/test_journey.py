"""End-to-end test of one user's path, with a Celery worker, its broker and the real engine.

The path: sign in, start from a recipe, watch, inspect a node and an earlier moment, stop, resume,
compare, share.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.helpers.chromium import a_context
from tests.helpers.waiting import patience
from webapp.experiments.models import Run
from workers.runs.active_runs import owner

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

ENGINE_MS = 300_000 * patience()
IS_PAST = "step => Number(/Step (\\d+) of/.exec(document.body.textContent)?.[1]) > step"
"""Whether the page has passed a step; it need not show every one."""
CHANGES = """\
agents.fern = unset
training.minutes = unset
training.steps = 5000
training.trees_per_step = 4
training.checkpoint_every = 1
search.nodes_per_tree = 4
problems.validation = 0
problems.test = 0
"""


def test_a_run_is_started_watched_stopped_resumed_compared_and_shared(
    browser, server, run, log, faults, start_worker
):
    run.feed(log)
    context = a_context(browser, viewport={"width": 1280, "height": 900}, base_url=server.url)
    page = context.new_page()
    faults.watch(page, server.url)
    heard: list[str] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda frame: heard.append(str(frame))))
    page.goto(run.sign_in_path())
    page.goto("/runs/new/?recipe=demo")
    page.get_by_label("Overrides (TOML)").fill(CHANGES)
    page.get_by_text("1 run to start.").wait_for()
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/"))
    page.get_by_role("heading", name="No trees yet").wait_for()
    worker = start_worker()
    made = Run.objects.exclude(pk=run.run.pk).get()
    heard.clear()

    pill = page.locator('[data-part="pill"]')
    tree_list = page.locator('[data-part="treeList"]')
    expect(tree_list).to_contain_text(re.compile(r"[1-4] nodes?"), timeout=ENGINE_MS)
    page.wait_for_function(IS_PAST, arg=1, timeout=ENGINE_MS)
    assert any('"batch"' in frame and "node.close" in frame for frame in heard)

    made.refresh_from_db()
    assert made.dispatched_at and made.lease_owner == owner(worker.process.pid)

    first = made.events.filter(kind="node.close").order_by("seq").first()
    page.evaluate(f"location.hash = 'tree={first.tree}&node={first.node}'")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("heading", name="Program").wait_for()
    page.get_by_label("Position in the log").fill(str(first.seq))
    page.get_by_text("Showing the state at event").wait_for()
    page.locator(f'[data-part="stream"][data-shown="{first.seq}"]').wait_for()
    page.get_by_role("button", name="Back to live").click()

    page.get_by_role("button", name="Stop").click()
    expect(pill).to_have_text("Stopped", timeout=ENGINE_MS)
    made.refresh_from_db()
    stopped_at = made.step
    page.get_by_role("button", name="Resume").click()
    expect(pill).to_have_text("Running", timeout=ENGINE_MS)
    page.wait_for_function(IS_PAST, arg=stopped_at, timeout=ENGINE_MS)
    page.get_by_role("button", name="Stop").click()
    expect(pill).to_have_text("Stopped", timeout=ENGINE_MS)

    page.goto(f"/compare/?run={run.run.pk}&run={made.pk}")
    page.get_by_role("heading", name="Differences in settings").wait_for()
    page.goto(f"/compare/shares/?run={run.run.pk}&run={made.pk}")
    page.get_by_role("button", name="Create link").click()
    link = page.locator("pre").inner_text()
    guest = a_context(browser, base_url=server.url).new_page()
    faults.watch(guest, server.url)
    guest.goto(link)
    guest.get_by_text("Shared:").wait_for()
    guest.get_by_role("heading", name="Differences in settings").wait_for()
    guest.context.close()
    context.close()
    assert faults.recorded == []
