"""The run page in headless Chromium over the real stack: Postgres, uvicorn, ingest, websocket.

`frame_ms_p95_5000_nodes` is the 95th percentile of the time from one animation frame to the next
while a tree of 5,000 nodes is in focus and its last 500 arrive, 50 a second;
`frame_ms_p95_20000_nodes` the same for the small multiples of a step of 20,000 nodes.
`first_paint_ms` and `first_tree_ms` are those of the page of the tree of 5,000 nodes: when the
browser first painted, and when the nodes were on the canvas. These and the heap are observations
without a goal: no peer draws such a tree, or follows a run event by event. `js_kb_compressed` is
all the JavaScript that the run page loads, vendored code included, each file compressed with gzip.
`open_1m_events_ms` is the time from the navigation until the page of a run of a million events
shows its newest trees and is up to date with its log; the median of three new windows that have
shown the list of runs for a second, and have only what that page loads in their caches.
`heap_mb_after_hour` is the JavaScript heap, after garbage collection, of a page that followed an
hour of a run at the demo's rate: 2,410 steps of 32 trees of 8 nodes, 171 nodes a second. They
are replayed as fast as the server stores them, so the page receives every event of the hour in less
time (`hour_seconds`). `zoom_1m_points_ms` is the longest of five zooms on the page of charts, into
a series of a million points and back, from the release of the mouse until the frame with the new
picture is painted. In all of them the page must hold exactly the events, nodes and points that were
sent, or there is no figure.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from benchmarks import PeerMissing, at_most

SUMMARY = "the run page in a browser: paint, frames, memory, a million events, zooming"
GOALS = {
    "frame_ms_p95_5000_nodes": at_most(50),
    "frame_ms_p95_20000_nodes": at_most(50),
    "open_1m_events_ms": at_most(2000),
    "zoom_1m_points_ms": at_most(200),
    "js_kb_compressed": at_most(250),
}
PARTS = ("frames", "open", "hour", "zoom")
BATCH = 5000  # events stored in one transaction while a log is replayed
WAIT_MS = 600_000  # for the page to show what was sent

# Records the frame after the one that showed it, without polling the page until then.
OPENED = """([seq, nodes]) => {
  const look = () => {
    const stream = document.querySelector('[data-part="stream"]');
    const canvas = document.querySelector('[data-part="canvas"]');
    if (Number(stream?.dataset.seq) !== seq || Number(canvas?.dataset.nodes) !== nodes) return;
    observer.disconnect();
    requestAnimationFrame(() => { window.opened = performance.now(); });
  };
  const observer = new MutationObserver(look);
  const attributeFilter = ["data-seq", "data-nodes"];
  observer.observe(document, { subtree: true, childList: true, attributes: true, attributeFilter });
  look();
}"""
FRAMES = """() => {
  window.frameTimes = [];
  const tick = (now) => {
    window.frameTimes.push(now);
    window.ticking = requestAnimationFrame(tick);
  };
  window.ticking = requestAnimationFrame(tick);
}"""
SHOWN = """([seq, nodes]) => {
  const stream = document.querySelector('[data-part="stream"]');
  const canvas = document.querySelector('[data-part="canvas"]');
  return Number(stream?.dataset.seq) === seq && Number(canvas?.dataset.nodes) === nodes
    && performance.now();
}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="all of them")
    parser.add_argument("--events", type=int, default=1_000_000, help="of the run that is opened")
    parser.add_argument("--hour-steps", type=int, help="steps of the hour (default: all of them)")
    parser.add_argument("--points", type=int, default=1_000_000, help="of the series to zoom into")
    parser.add_argument("--nodes", type=int, default=5000, help="of the widest tree")
    parser.add_argument("--seconds", type=float, default=10, help="that frames are counted")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    try:
        from benchmarks.ui_charts import zoom
        from benchmarks.ui_site import site
    except ImportError as missing:
        raise PeerMissing(f"{missing}; pip install -c constraints.txt '.[dev]'") from None
    figures: dict[str, Any] = {}
    measurements = {"frames": _wide, "open": _long, "hour": _hour, "zoom": zoom}
    try:
        with site() as stack:
            for part in arguments.parts:
                measurements[part](stack, figures, arguments)
                print(f"{part}: {figures}", file=sys.stderr, flush=True)
            versions = {"chromium": stack.browser.version, **stack.versions}
    except FileNotFoundError as missing:  # no Chromium
        raise PeerMissing(str(missing)) from None
    judged = {name: figures.pop(name) for name in GOALS if name in figures}
    return {"ratios": judged, "figures": figures, "versions": versions}


def _wide(stack: Any, figures: dict[str, Any], arguments: argparse.Namespace) -> None:
    from benchmarks.ui_log import wide_trees

    one = wide_trees(1, arguments.nodes)
    with _page(stack, "one tree") as (run, page):
        _grow(run, page, one, arguments, focused=True)
        figures["frame_ms_p95_5000_nodes"] = _frames(page)
        scripts: list[str] = []
        page.on("response", lambda reply: scripts.append(reply.url))
        page.reload()
        shown = page.wait_for_function(SHOWN, arg=[len(one), arguments.nodes], timeout=WAIT_MS)
        figures["first_tree_ms"] = round(shown.json_value())
        page.evaluate("([tree]) => { location.hash = `tree=${tree}&node=1`; }", [one[-1].tree])
        page.locator("#node-title").wait_for()
        page.locator("[data-metric]").first.wait_for()
        paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        figures["first_paint_ms"] = round(page.evaluate(paint))
        figures["js_kb_compressed"] = _script_kb(page, scripts)
    with _page(stack, "four trees") as (run, page):
        _grow(run, page, wide_trees(4, arguments.nodes), arguments, focused=False)
        figures["frame_ms_p95_20000_nodes"] = _frames(page)


def _grow(run: Any, page: Any, log: list, arguments: argparse.Namespace, focused: bool) -> None:
    """Feeds the last nodes, 50 a second, while frames are counted."""
    from benchmarks.ui_log import NODES_PER_SECOND, until_nodes

    nodes = sum(event.kind == "node.close" for event in log)
    arriving = min(nodes // 2, round(arguments.seconds * NODES_PER_SECOND))
    before, after = until_nodes(log, nodes - arriving)
    run.feed(before)
    opened = sum(event.kind == "node.open" for event in before)
    _await(page, len(before), opened)
    if focused:
        page.evaluate("tree => { location.hash = `tree=${tree}`; }", before[-1].tree)
        page.locator('[data-part="back"]').wait_for()
    page.evaluate(FRAMES)
    _feed_evenly(run, after, arriving / NODES_PER_SECOND)
    page.evaluate("cancelAnimationFrame(window.ticking)")
    _await(page, len(log), nodes)


def _feed_evenly(run: Any, log: list, seconds: float) -> None:
    """Feeds a log evenly, ten times a second."""
    began, rounds = time.monotonic(), max(1, round(seconds * 10))
    for turn in range(rounds):
        run.feed(log[len(log) * turn // rounds : len(log) * (turn + 1) // rounds])
        time.sleep(max(0.0, began + (turn + 1) / 10 - time.monotonic()))


def _frames(page: Any) -> float:
    times = page.evaluate("window.frameTimes")
    gaps = [after - before for before, after in pairwise(times)]
    return round(statistics.quantiles(gaps, n=20)[-1], 1)


def _long(stack: Any, figures: dict[str, Any], arguments: argparse.Namespace) -> None:
    from benchmarks.ui_log import NODES, TREES, LongLog

    log, run = LongLog(), stack.run("a million events")
    for batch in _batches(log.take_steps(max(1, arguments.events // log.events_per_step))):
        run.feed(batch)
    opened = []
    for _ in range(3):
        with stack.opened(run) as page:
            page.evaluate(OPENED, [log.events_taken, TREES * NODES])
            shown = page.wait_for_function("() => window.opened", polling=100, timeout=WAIT_MS)
            opened.append(round(shown.json_value()))
    figures["open_1m_events_ms"] = sorted(opened)[1]
    figures["open_1m_events_ms_of_each"] = opened
    figures["events"] = log.events_taken


def _hour(stack: Any, figures: dict[str, Any], arguments: argparse.Namespace) -> None:
    from benchmarks.ui_log import HOUR_STEPS, NODES, TREES, LongLog

    log = LongLog()
    with _page(stack, "an hour") as (run, page):
        began = time.monotonic()
        for batch in _batches(log.take_steps(arguments.hour_steps or HOUR_STEPS)):
            run.feed(batch)
        _await(page, log.events_taken, TREES * NODES)
        figures["hour_seconds"] = round(time.monotonic() - began, 1)
        figures["hour_events"] = log.events_taken
        figures["heap_mb_after_hour"] = _heap_mb(page)


def _batches(steps: Iterable[list]) -> Iterator[list]:
    """Yields whole steps together, so that a transaction holds about `BATCH` events."""
    batch: list = []
    for step in steps:
        batch += step
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _await(page: Any, seq: int, nodes: int) -> None:
    page.wait_for_function(SHOWN, arg=[seq, nodes], timeout=WAIT_MS)


def _heap_mb(page: Any) -> float:
    """Returns the size of JavaScript's heap after a full collection, in MiB."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return round(session.send("Runtime.getHeapUsage")["usedSize"] / 2**20, 1)


def _script_kb(page: Any, addresses: list[str]) -> float:
    """Returns kilobytes (1,000 bytes) of the scripts among the addresses, compressed separately."""
    scripts = {address for address in addresses if address.split("?")[0].endswith(".js")}
    bodies = [page.request.get(address).body() for address in scripts]
    return round(sum(len(gzip.compress(body)) for body in bodies) / 1000, 1)


@contextmanager
def _page(stack: Any, name: str) -> Iterator[tuple[Any, Any]]:
    """Yields a new run and its page."""
    run = stack.run(name)
    with stack.opened(run) as page:
        yield run, page
