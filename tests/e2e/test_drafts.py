"""Tests of the live text of nodes in flight, on the pages of a search and of a training."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from engine.events.drafts import Draft, DraftWriter
from tests.helpers.accessibility import broken_rules
from tests.helpers.builders import A_PROBLEM, an_event
from tests.helpers.waiting import eventually
from webapp.experiments.scheduling.leases import take_lease
from webapp.experiments.services import mark_starting
from webapp.searches.services import SearchSpec, create_search
from webapp.telemetry.drafts import is_watched
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Drafts
from workers.runs.draft_shipper import DraftShipper

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

BEGUN = "<img src=x onerror=alert(1)>def solve(x):"
CLOSED = {
    "program": "def solve(x):\n    return x\n", "verdict": "passed", "score": 1.0, "fraction": 1.0,
    "tests": [], "tokens": 9, "stop": "end_of_text", "mean_logprob": -0.1, "policy_version": 0,
    "seconds": 0.5, "error": "",
}  # fmt: skip


class Writing:
    """A run whose nodes are being written, as its engine and worker ship them."""

    def __init__(self, run, fencing, folder):
        self.run, self.fencing = run, fencing
        self.shipper, self.writer = DraftShipper(run.pk, folder), DraftWriter(folder, "oak")
        self.seq = run.head_seq

    def feed(self, *events):
        for kind, payload in events:
            self.seq += 1
            ingest(self.run.pk, self.fencing, [an_event(self.seq, kind, **payload)])

    def show(self, *drafts):
        """Ships drafts once a page watches."""
        eventually(lambda: is_watched(self.run.pk), "a page to watch")
        before = self._version()
        self.writer.write(list(drafts))
        eventually(lambda: self.shipper.ship() or self._version() != before, "the drafts to ship")

    def _version(self):
        return Drafts.objects.get(pk=self.run.pk).version


def opened(node):
    return "node.open", {
        "tree": 2, "node": node, "agent": "oak", "parent": 0, "depth": 1, "draws": {},
    }  # fmt: skip


@pytest.fixture
def writing(run, tmp_path):
    """A search of the demo project with two nodes in flight."""
    (tmp_path / "drafts").mkdir()
    spec = SearchSpec(["starter:oak"], A_PROBLEM, None, {}, "Sort")
    search = create_search(run.project, run.user, spec)
    fencing = take_lease(search.run_id, "worker", 600)
    writing = Writing(mark_starting(search.run_id, fencing), fencing, tmp_path)
    tree = {"tree": 2, "step": 1, "problem": "p", "statement": "s", "difficulty": 0}
    writing.feed(("run.state", {"state": "running"}), ("tree.open", tree), opened(1), opened(2))
    return writing


@pytest.mark.large
def test_the_page_of_a_search_shows_what_each_node_in_flight_has_so_far(window, writing):
    page = window(f"/runs/{writing.run.pk}/")
    card = page.locator('[data-part="writing"]')
    expect(card.locator("section")).to_have_count(2)
    expect(card).to_contain_text("Waiting for the first tokens")
    writing.show(Draft(2, 1, "oak", 3, BEGUN))
    first = card.get_by_label("Text of node 1 so far")
    expect(first).to_have_text(BEGUN)
    expect(card).to_contain_text("3 tokens so far")
    assert broken_rules(page) == []
    writing.show(Draft(2, 1, "oak", 4, f"{BEGUN}\n    return x"), Draft(2, 2, "oak", 1, "def"))
    expect(first).to_contain_text("return x")
    card.get_by_role("button", name="Node 2 by oak").click()
    panel = page.locator('[data-part="panel"]')
    expect(panel.get_by_label("Text so far")).to_have_text("def")
    writing.show(
        Draft(2, 1, "oak", 4, f"{BEGUN}\n    return x"), Draft(2, 2, "oak", 2, "def solve")
    )
    expect(panel.get_by_label("Text so far")).to_have_text("def solve")
    page.reload()
    expect(first).to_contain_text("return x")
    writing.feed(("node.close", {"tree": 2, "node": 1, **CLOSED}))
    expect(card.locator("section")).to_have_count(1)
    writing.feed(("node.close", {"tree": 2, "node": 2, **CLOSED}))
    expect(card).to_be_hidden()


def test_the_panel_of_a_training_s_node_shows_what_it_has_so_far(window, run, log, tmp_path):
    (tmp_path / "drafts").mkdir()
    begun = []
    while not begun or begun[-1].kind != "node.open":
        begun.append(log.popleft())
    run.feed(begun)
    run.run.refresh_from_db()
    node = begun[-1]
    writing = Writing(run.run, run.fencing, tmp_path)
    page = window(f"/runs/{run.run.pk}/#tree={node.tree}&node={node.node}")
    panel = page.locator('[data-part="panel"]')
    expect(panel).to_contain_text("Waiting for the first tokens")
    writing.show(Draft(node.tree, node.node, node.payload["agent"], 3, "def solve(x):"))
    expect(panel.get_by_label("Text so far")).to_have_text("def solve(x):")
