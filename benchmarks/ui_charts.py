"""Zooms on the page of charts into a series of a million points.

The points are stored as ingest stores them, without the events that reported them, because reading
and drawing are measured. The points behind a picture are counted: a zoom from step a to step b must
cover exactly the steps between them.
"""

from __future__ import annotations

import argparse
import math
import random
from typing import Any
from urllib.parse import parse_qs, urlsplit

METRIC = "gradient_norm"
ZOOMS = ((0.2, 0.8), (0.3, 0.9), (0.1, 0.5), (0.4, 0.6), (0.05, 0.95))
WAIT_MS = 60_000
LISTEN = """() => {
  addEventListener("mouseup", () => { window.released = performance.now(); }, true);
  addEventListener("grove:drawn", ({ target }) => {
    // The frame that shows it is painted between its callbacks and the next task.
    requestAnimationFrame(() => setTimeout(() => {
      const points = Number(target.dataset.points);
      window.zoomed = { ms: performance.now() - window.released, points };
    }));
  });
}"""

# As a function: the page's content security policy forbids the evaluation of text.
ZOOMED = "() => window.zoomed"


def zoom(here: Any, figures: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Adds `zoom_1m_points_ms` and `points`.

    Raises:
        RuntimeError: a picture does not cover all points of its range.
    """
    run = here.run("a million points")
    name = _series(run, arguments.points)
    with here.opened(run, f"/charts/?run={run.run.pk}&q={METRIC}") as page:
        card = page.locator(f'[data-metric="{METRIC}"][data-points="{arguments.points}"]')
        card.wait_for(timeout=WAIT_MS)
        card.scroll_into_view_if_needed()
        page.evaluate(LISTEN)
        times = [_zoom(page, part, arguments.points) for part in ZOOMS]
    figures["zoom_1m_points_ms"] = max(times)
    figures["zoom_1m_points_ms_of_each"] = times
    figures["points"] = arguments.points
    figures["series"] = name


def _zoom(page: Any, part: tuple[float, float], points: int) -> float:
    """Returns the milliseconds of a zoom into a part of the whole range."""
    page.evaluate("window.zoomed = null")
    over = page.locator(f'[data-metric="{METRIC}"] .u-over').bounding_box()
    left, right = (over["x"] + over["width"] * share for share in part)
    height = over["y"] + over["height"] / 2
    page.mouse.move(left, height)
    page.mouse.down()
    page.mouse.move((left + right) / 2, height)
    page.mouse.move(right, height)
    page.mouse.up()
    zoomed = page.wait_for_function(ZOOMED, timeout=WAIT_MS).json_value()
    first, last = (float(parse_qs(urlsplit(page.url).query)[end][0]) for end in ("from", "to"))
    expected = math.floor(min(last, points - 1)) - math.ceil(max(first, 0)) + 1
    if zoomed["points"] != expected:
        raise RuntimeError(f"{zoomed['points']} points from {first} to {last}, not {expected}")
    page.evaluate("window.zoomed = null")
    page.get_by_role("button", name="Reset zoom").click()
    page.wait_for_function(ZOOMED, timeout=WAIT_MS)
    return round(zoomed["ms"], 1)


def _series(run: Any, points: int) -> str:
    """Stores a series of `points` points for a run; returns its name."""
    from engine.events.vocabulary import Event
    from tests.helpers.sample_log import START
    from webapp.telemetry.series.blocks import store
    from webapp.telemetry.series.buffer import PointBuffer

    name, draw = f"{METRIC}.oak", random.Random(1)
    payload = {"agent": "oak", "step": 0, METRIC: 1.0}
    run.feed([Event(1, START, "agent.update", None, None, payload)])
    buffer = PointBuffer()
    for n in range(1, points):
        value = 1 + math.sin(n / 5e4) + draw.random() * 0.5
        buffer.add((n + 1, n, n * 0.1, n * 40, n * 2), (name,), (value,))
    store(run.run.pk, buffer)
    return name
