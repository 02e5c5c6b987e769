"""Test of a search from the page to its program, with real starters in a real engine."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.helpers.accessibility import broken_rules
from tests.helpers.waiting import patience
from webapp.searches.models import Search

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ENGINE_MS = 300_000 * patience()
TESTS = '[{"arguments": [[3, 1]], "expected": [3, 1]}, {"arguments": [[5]], "expected": [5]}]'


@pytest.mark.large
def test_a_team_of_starters_searches_a_pasted_problem_and_its_answer_is_taken(window, start_worker):
    page = window("/")
    page.get_by_role("link", name="Search", exact=True).click()
    page.get_by_role("heading", name="No searches yet").wait_for()
    page.get_by_role("link", name="Start the first search").click()
    page.get_by_label("fern").uncheck()  # one process less to start
    page.get_by_label("Paste a problem").check()
    page.get_by_label("Statement").fill("Write solve(x), which takes a list of integers x.\n")
    page.get_by_label("Entry point").fill("solve")
    page.get_by_label("Public tests").fill(TESTS)
    page.locator('[data-path="search.nodes_per_tree"]').fill("5")
    page.locator('[data-path="search.stop_when_solved"]').select_option("false")
    expect(page.get_by_text("2 settings changed; 1 search to start.")).to_be_visible()
    page.get_by_text("2 public, shown to the team").wait_for()
    assert broken_rules(page) == []
    page.get_by_role("button", name="Start the search").click()
    page.get_by_role("heading", name="No answer yet").wait_for()
    start_worker()
    search = Search.objects.get()
    tree_list = page.locator('[data-part="treeList"]')
    expect(tree_list).to_contain_text("Node 1", timeout=ENGINE_MS)
    expect(page.locator('[data-part="pill"]')).to_have_text("Finished", timeout=ENGINE_MS)
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    expect(page.locator('[data-part="facts"]')).to_contain_text("Nodes 5 of 5")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    body = page.request.get(f"/api/v1/searches/{search.run_id}/answer").json()
    assert download.value.path().read_text() == body["program"].rstrip() + "\n"
    expect(page.locator('[data-part="answerText"]')).to_contain_text(f"Node {body['node']} by")
    assert broken_rules(page) == []
    page.get_by_role("button", name="Show node").click()
    page.locator('[data-part="panel"]').get_by_role("heading", name="Program").wait_for()
