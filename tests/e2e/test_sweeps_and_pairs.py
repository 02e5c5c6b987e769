"""Tests of a sweep started in the browser, and of a problem's trees in two runs or checkpoints."""

from __future__ import annotations

import msgspec
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import SAMPLE
from tests.helpers.site import SampleRun
from webapp.experiments.models import Run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_values_to_try_become_a_run_for_every_combination(window, run, faults):
    faults.expected = ("Failed to load resource",)
    page = window("/runs/new/?recipe=demo")
    values = page.get_by_label("Sweep")
    values.fill("loss.kl_coefficient = 0.001, -1\nsearch.nodes_per_tree = 4, 5")
    page.locator('[data-part="start"]').click()
    alert = page.get_by_role("alert").filter(has_text="loss.kl_coefficient")
    alert.get_by_text("-1").first.wait_for()
    values.fill("loss.kl_coefficient = 0.001, 0.01\nsearch.nodes_per_tree = 4, 5")
    page.get_by_label("Seeds").fill("1-2")
    page.get_by_text("8 runs to start.").wait_for()
    page.get_by_role("button", name="Start 8 runs").click()
    page.get_by_text("8 runs of demo are queued").wait_for()
    made = Run.objects.exclude(pk=run.run.pk)
    requested = {(r.seed, r.config["loss"]["kl_coefficient"], r.config["search"]["nodes_per_tree"])
             for r in made}  # fmt: skip
    assert requested == {(s, kl, n) for s in (1, 2) for kl in (0.001, 0.01) for n in (4, 5)}
    assert made.values("experiment").distinct().count() == 1


def first_problem_again(log) -> list:
    """The log with an additional step whose first tree has the problem of the very first tree."""
    opened = [event for event in log if event.kind == "tree.open"]
    again = next(e for e in opened if e.payload["step"] == SAMPLE.steps)
    same = {**again.payload, **{k: opened[0].payload[k] for k in ("problem", "statement")}}
    changed = msgspec.structs.replace(again, payload=same)
    return [changed if event is again else event for event in log]


def figures(log, tree: int) -> dict[str, int]:
    nodes = {e.node for e in log if e.kind == "node.open" and e.tree == tree}
    tokens = [e.payload["tokens"] for e in log if e.kind == "node.close" and e.tree == tree]
    return {"Nodes": len(nodes), "Tokens": sum(tokens)}


def compares(page, log, trees: list[int]) -> None:
    """Asserts that the page shows the two trees of one problem, with their metrics."""
    page.get_by_role("heading", name="Compare trees").wait_for()
    expect(page.locator(".tree-pair canvas")).to_have_count(2)
    assert page.get_by_text("These trees are of different problems").count() == 0
    for row in ("Nodes", "Tokens"):
        cells = page.get_by_role("row", name=row, exact=False).filter(
            has=page.get_by_role("rowheader", name=row, exact=True)
        )
        results = [f"{figures(log, tree)[row]:,}" for tree in trees]
        expect(cells.locator("td")).to_have_text(results)


@pytest.mark.large
def test_trees_of_one_problem_from_two_runs(window, run, log):
    events = list(log)
    run.feed(events)
    other = SampleRun(SAMPLE, "other")
    other.feed(events)
    tree = next(e.tree for e in events if e.kind == "tree.open")
    page = window(f"/compare/trees/?tree={run.run.pk}:{tree}")
    choices = page.get_by_label("compared with")
    (one,) = [o for o in choices.locator("option").all_inner_texts() if "other" in o]
    choices.select_option(label=one)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url(lambda url: str(other.run.pk) in url)
    compares(page, events, [tree, tree])
    expect(page.locator(".tree-pair h2")).to_contain_text(["demo", "other"])


@pytest.mark.large
def test_trees_of_one_problem_from_two_checkpoints_of_a_run(window, run, log):
    """Answers to one problem by the models of step 1 and by those of the last step."""
    events = first_problem_again(log)
    run.feed(events)
    opened = [e for e in events if e.kind == "tree.open"]
    first = opened[0].tree
    last = next(e.tree for e in opened if e.payload["step"] == SAMPLE.steps)
    page = window(f"/compare/trees/?tree={run.run.pk}:{first}")
    choices = page.get_by_label("compared with")
    choices.select_option(value=f"{run.run.pk}:{last}")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url(lambda url: str(last) in url)
    compares(page, events, [first, last])
