"""Tests of comments in a real browser: on a run, on a node, and by others at the same time."""

from __future__ import annotations

import pytest

from webapp.comments.services import write_comment
from webapp.comments.targets import Target

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_one_writes_about_a_run_and_a_node_and_sees_what_others_write(window, server, run, log):
    page = window(f"/runs/{run.run.pk}/")
    card = page.locator("#comments")
    card.get_by_text("No comments yet.").wait_for()
    card.get_by_role("textbox").fill("It **learns** <script>alert(1)</script>")
    card.get_by_role("button", name="Post").click()
    card.get_by_role("listitem").get_by_text("learns", exact=True).wait_for()
    assert card.locator("script").count() == 0 and card.locator("strong").count() == 1

    run.feed(log)
    page.locator('[data-part="stage"]').focus()
    page.locator('[data-tool="list"]').click()
    page.get_by_role("treeitem").first.wait_for()
    page.locator('[data-part="stage"]').press("Enter")
    page.get_by_role("button", name="Comments on this node").wait_for()
    card.get_by_role("heading", name="Comments on node").wait_for()
    card.get_by_text("No comments yet.").wait_for()
    card.get_by_role("textbox").fill("Why this repair?")
    card.get_by_role("button", name="Post").click()
    card.get_by_role("listitem").get_by_text("Why this repair?").wait_for()

    page.get_by_role("button", name="Close node").click()
    card.get_by_role("heading", name="Comments", exact=True).wait_for()
    card.get_by_role("listitem").get_by_text("learns", exact=True).wait_for()
    card.get_by_role("textbox").fill("half a sent")
    owner = run.run.created_by
    write_comment(Target((run.run,)), owner, "Written meanwhile", server.url)
    card.get_by_role("listitem").get_by_text("Written meanwhile").wait_for()
    assert card.get_by_role("textbox").input_value() == "half a sent", "it is not taken away"
    card.get_by_text("Delete", exact=True).first.click()
    card.get_by_role("button", name="Delete comment").click()
    card.get_by_text("learns", exact=True).wait_for(state="detached")
