"""How quick the run page is in a headless Chromium, over the real server and a real Postgres.

Logs are those of a run: real search trees with their posteriors, real credit and drawn authors,
written into Postgres as the worker writes them, and shown by the real page. `first_paint_ms`: from
opening the page of a tree of 5,000 nodes to its first picture. `frame_ms_p95_5000_nodes`: time
between frames in that page while 50 nodes a second arrive; `frame_ms_p95_idle` is the same page
at rest, which is what Chromium gives without a GPU. `open_1m_events_ms`: from opening the page of
a run with so many events to its newest event. Heap is measured after a collection of garbage.

At most 50 ms between frames, 2 s to open, and 250 kB of compressed scripts are what the page is
held to. Every figure is taken only once the page holds every event that the log has.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any

from benchmarks import PeerMissing

SUMMARY = "the run page in Chromium: first paint, frames while a tree grows, a log of a million"
GOALS: dict[str, Any] = {}
ROOT = Path(__file__).resolve().parents[1]
NODES_PER_SECOND = 50
BATCH = 1000
ARRIVAL_MS = 300_000

DRAWN = """() => {
  const canvas = document.querySelector('[data-part="canvas"]');
  if (!canvas?.width || canvas.closest("[hidden]")) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value) => value !== 0);
}"""
SINCE_OPENED = f"""() => new Promise((resolve) => {{
  const drawn = {DRAWN};
  const look = () => (drawn() ? resolve(performance.now()) : requestAnimationFrame(look));
  look();
}})"""
ARRIVED = """(seq) => new Promise((resolve) => {
  const host = document.querySelector('[data-part="stream"]');
  const look = () => {
    if (Number(host.dataset.seq) >= seq) resolve(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""
FRAMES = """(ms) => new Promise((resolve) => {
  const gaps = [];
  const end = performance.now() + ms;
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    if (now < end) requestAnimationFrame(frame);
    else resolve(gaps);
  };
  requestAnimationFrame(frame);
})"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=5000, help="nodes of the one tree")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the long log")
    parser.add_argument("--seconds", type=float, default=20, help="of watching the tree grow")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """There is no ratio: nobody else draws a search tree as it grows."""
    with site() as (server, browser):
        figures = _one_tree(server, browser, arguments.nodes, arguments.seconds)
        figures |= _long_log(server, browser, arguments.events)
        version = browser.version
    figures["js_kb_compressed"] = round(_script_bytes() / 1000, 1)
    versions = {"chromium": version, "python": platform.python_version()}
    return {"ratios": {}, "figures": figures, "versions": versions}


@contextmanager
def site() -> Iterator[tuple[Any, Any]]:
    """A server on a Postgres of its own, and a browser."""
    from tests.browser.chromium import chromium
    from tests.browser.site import Server
    from workers.embedded.postgres import EmbeddedPostgres

    with tempfile.TemporaryDirectory() as directory:
        var = Path(directory)
        var.chmod(0o755)
        database = EmbeddedPostgres(var / "postgres")
        url = database.start()
        os.environ |= {"GROVE_VAR": str(var), "DATABASE_URL": url}
        os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
        server = Server(var, url)
        try:
            import django
            from django.core.management import call_command

            django.setup()
            call_command("migrate", verbosity=0)
            server.start()
            with chromium() as browser:
                # Playwright keeps an event loop in this thread, which Django takes for async code.
                os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
                yield server, browser
        except FileNotFoundError as error:
            raise PeerMissing(str(error)) from None
        finally:
            server.kill()
            database.stop()


def _one_tree(server: Any, browser: Any, nodes: int, seconds: float) -> dict[str, Any]:
    from tests.browser.sample_log import Sample, sample_events
    from tests.browser.site import SampleRun

    more = int(NODES_PER_SECOND * seconds) + NODES_PER_SECOND
    sample = Sample(steps=1, trees=1, nodes=nodes + more, final=False, minutes=None)
    run = SampleRun(sample, "one tree")
    events = sample_events(sample)
    head, tree = _feed_nodes(run, events, nodes)
    page = _page(server, browser, run)
    page.goto(f"{server.url}/runs/{run.run.pk}/#tree={tree}")
    first = page.evaluate(SINCE_OPENED)
    page.evaluate(ARRIVED, head)
    idle = page.evaluate(FRAMES, 3000)
    feeding = threading.Thread(target=_feed_live, args=(run, events, seconds))
    feeding.start()
    growing = page.evaluate(FRAMES, 1000 * seconds)
    feeding.join()
    run.run.refresh_from_db()
    page.evaluate(ARRIVED, run.run.head_seq)
    heap = _heap_mb(page)
    page.context.close()
    return {
        "first_paint_ms": round(first),
        "frame_ms_p95_5000_nodes": _p95(growing),
        "frame_ms_p50": round(statistics.median(growing), 1),
        "frame_ms_p95_idle": _p95(idle),
        "heap_mb": heap,
    }


def _long_log(server: Any, browser: Any, events: int) -> dict[str, Any]:
    from tests.browser.sample_log import Sample, sample_events
    from tests.browser.site import SampleRun

    sample = Sample(steps=10, final=False, trees=32, minutes=None)
    run = SampleRun(sample, "long log")
    source = islice(_going_on(list(sample_events(sample))), events)
    head = 0
    while batch := list(islice(source, 20 * BATCH)):
        head = run.feed(batch)
    page = _page(server, browser, run)
    page.goto(f"{server.url}/runs/{run.run.pk}/")
    opened = page.evaluate(ARRIVED, head)
    page.wait_for_function(DRAWN)
    heap = _heap_mb(page)
    page.context.close()
    return {"open_1m_events_ms": round(opened), "events": head, "heap_mb_long_log": heap}


def _going_on(events: list[Any]) -> Iterator[Any]:
    """A log whose steps, from the third on, come again and again as later steps."""
    import msgspec

    starts = {e.payload["step"]: i for i, e in enumerate(events) if e.kind == "step.start"}
    yield from events
    block, steps = events[starts[3] :], max(starts) - 2
    for again in count(1):
        shift, time_shift = again * len(block), again * (block[-1].time - block[0].time)
        for event in block:
            payload = event.payload
            if "step" in payload:
                payload = {**payload, "step": payload["step"] + again * steps}
            if trees := payload.get("trees") if event.kind == "agent.update" else None:
                payload = {**payload, "trees": [tree + shift for tree in trees]}
            yield msgspec.structs.replace(
                event,
                seq=event.seq + shift,
                time=event.time + time_shift,
                tree=event.tree and event.tree + shift,
                payload=payload,
            )


def _feed_nodes(run: Any, events: Iterator[Any], nodes: int) -> tuple[int, int]:
    """Ship until so many nodes are closed; returns (head, id of the last tree)."""
    head, closed, tree, batch = 0, 0, 0, []
    for event in events:
        batch.append(event)
        tree = event.seq if event.kind == "tree.open" else tree
        closed += event.kind == "node.close"
        if len(batch) == BATCH or closed == nodes:
            head, batch = run.feed(batch), []
        if closed == nodes:
            break
    return head, tree


def _feed_live(run: Any, events: Iterator[Any], seconds: float) -> None:
    from django.db import connection

    began, sent = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed * NODES_PER_SECOND) - sent
        batch = []
        while due > 0 and (event := next(events, None)):
            batch.append(event)
            due -= event.kind == "node.close"
            sent += event.kind == "node.close"
        if batch:
            run.feed(batch)
        time.sleep(0.1)  # the shipper's own pace
    connection.close()


def _page(server: Any, browser: Any, run: Any) -> Any:
    """Signed in; the modules are in the cache, as they are for who comes back."""
    viewport = {"width": 1440, "height": 900}
    page = browser.new_context(viewport=viewport, base_url=server.url).new_page()
    page.set_default_timeout(ARRIVAL_MS)
    page.goto(run.sign_in_path().partition("?")[0])
    return page


def _heap_mb(page: Any) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    return round(used / 1e6, 1)


def _p95(gaps: list[float]) -> float:
    return round(sorted(gaps)[int(0.95 * len(gaps))], 1)


def _script_bytes() -> int:
    """Everything that the page may load, vendored code included, compressed."""
    files = [*(ROOT / "static" / "js").glob("*.js"), *(ROOT / "static" / "vendor").rglob("*.js")]
    return sum(len(gzip.compress(path.read_bytes())) for path in files)
