"""Tests that incremental painting of many nodes equals the first painting of a new page."""

from __future__ import annotations

import pytest

from benchmarks.ui_log import until_nodes, wide_trees

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TREES, NODES = 3, 250  # more than a stage draws in one frame
PICTURE = "() => document.querySelector('[data-part=canvas]').toDataURL()"
LIKE = "(other) => document.querySelector('[data-part=canvas]').toDataURL() === other"
NEXT_FRAME = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""
SHOWN = """([seq, nodes]) =>
  Number(document.querySelector('[data-part=stream]').dataset.seq) === seq
  && Number(document.querySelector('[data-part=canvas]').dataset.nodes) === nodes"""


@pytest.fixture
def open_page(window, run):
    # Tall, so that scrolling reveals no undrawn tile.
    return lambda fragment: window(f"/runs/{run.run.pk}/{fragment}", height=1800)


@pytest.mark.large
@pytest.mark.parametrize("focused", [False, True])
def test_a_forest_that_grew_looks_like_one_that_was_loaded(open_page, run, focused):
    log = wide_trees(TREES, NODES)
    first, rest = until_nodes(log, 300)
    run.feed(first)
    tree = next(event.tree for event in log if event.kind == "tree.open")
    fragment = f"#tree={tree}" if focused else ""
    page = open_page(fragment)
    opened = sum(event.kind == "node.open" for event in first)
    page.wait_for_function(SHOWN, arg=[len(first), opened])
    for nodes in (100, 250):
        _, later = until_nodes(rest, nodes)
        run.feed(rest[: len(rest) - len(later)])
        rest = later
    run.feed(rest)
    whole = [len(log), TREES * NODES]
    page.wait_for_function(SHOWN, arg=whole)
    loaded = open_page(fragment)
    loaded.wait_for_function(SHOWN, arg=whole)
    if focused:
        loaded.locator('[data-part="back"]').wait_for()
    loaded.evaluate(NEXT_FRAME)
    picture = loaded.evaluate(PICTURE)
    assert len(picture) > 10_000, "something is painted"
    page.bring_to_front()
    page.wait_for_function(LIKE, arg=picture)
