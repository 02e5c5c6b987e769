"""Script that takes the pictures of the documentation on a running server.

    .venv/bin/python docs/screenshot.py SIGN_IN_LINK docs --run RUN_ID --search RUN_ID

Of a training run `run.png` shows the tree with the deepest repair in focus, `charts.png` the first
charts; of a search that ended `search.png` shows its tree and its answer. They are taken only of
pages that are up to date with the log, so they never show less than the log has.
`pictures.json` keeps the digest of each picture and the outline of its page: the headings and
controls of its template. A test compares both with the current ones and so detects an old picture.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

BROWSERS = ("chromium", "chromium-headless-shell", "google-chrome")
SIZE = {"width": 1440, "height": 1560}
CHARTS_HEIGHT = 1000
SEARCH_HEIGHT = 1400
SCALE = 1.5  # sharp on dense screens, and still a small file
ARRIVAL_MS = 20_000 * float(os.environ.get("GROVE_PATIENCE") or 1)
OUTLINE = """async () => {
  const html = await (await fetch(location.pathname + location.search)).text();
  const main = new DOMParser().parseFromString(html, "text/html").querySelector("main");
  const texts = [...main.querySelectorAll("h2, h3, summary, button, label > span, option")]
    .map((one) => one.textContent.trim()).filter((text) => text && !/[0-9]/.test(text));
  return [...new Set(texts)].sort();
}"""
"""Of the template, before scripts fill in a run's data; texts with a digit belong to one run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("link", help="one-time sign-in link, as the server prints it")
    parser.add_argument("directory", type=Path, help="where to write the pictures")
    parser.add_argument("--run", help="id of a training run")
    parser.add_argument("--search", help="id of the run of a search that ended")
    parser.add_argument("--dark", action="store_true", help="take the dark theme")
    given = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        parser.error("no chromium on PATH; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(
            viewport=SIZE,
            device_scale_factor=SCALE,
            color_scheme="dark" if given.dark else "light",
            reduced_motion="reduce",
        )
        page.set_default_timeout(ARRIVAL_MS)
        page.on("console", lambda message: print(message.text, file=sys.stderr))
        parts = urlsplit(given.link)
        page.goto(given.link)
        site = f"{parts.scheme}://{parts.netloc}"
        notes = given.directory / "pictures.json"
        pictures = json.loads(notes.read_text("utf-8")) if notes.exists() else {}
        takes = {"run": ("run", take_run), "charts": ("run", take_charts)}
        takes["search"] = ("search", take_search)
        for name, (kind, take) in takes.items():
            if run := vars(given)[kind]:
                file = given.directory / f"{name}.png"
                pictures[file.name] = take(page, site, run, file)
        browser.close()
    notes.write_text(json.dumps(pictures, indent=1, ensure_ascii=False) + "\n", "utf-8")


def noted(page: Page, output: Path) -> dict[str, object]:
    """Returns the picture's SHA-256 and the outline of its page."""
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    return {"sha256": digest, "outline": page.evaluate(OUTLINE)}


def settle(page: Page) -> None:
    """Waits until nothing loads, the fonts are there, and what has arrived is painted."""
    page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
    page.evaluate("() => document.fonts.ready.then(() => {})")
    frame = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    page.evaluate(f"async () => {{ await {frame}; await {frame}; }}")


def take_run(page: Page, site: str, run: str, output: Path) -> dict[str, object]:
    """Opens the run, puts its deepest tree in focus and writes the picture."""
    page.goto(f"{site}/runs/{run}/{deepest(page, site, run)}")
    page.locator('[data-part="stream"][data-kind="live"], [data-kind="ended"]').wait_for()
    page.get_by_role("heading", name="Public tests").wait_for()
    settle(page)
    page.screenshot(path=output)
    return noted(page, output)


def take_charts(page: Page, site: str, run: str, output: Path) -> dict[str, object]:
    """Opens the charts of the run and writes the picture of the first ones."""
    page.set_viewport_size({**SIZE, "height": CHARTS_HEIGHT})
    page.goto(f"{site}/charts/?run={run}")
    page.locator("[data-metric] canvas").nth(5).wait_for()
    settle(page)
    page.screenshot(path=output)
    return noted(page, output)


def take_search(page: Page, site: str, run: str, output: Path) -> dict[str, object]:
    """Opens a search that has ended and writes the picture of its tree and its answer."""
    page.set_viewport_size({**SIZE, "height": SEARCH_HEIGHT})
    page.goto(f"{site}/runs/{run}/")
    page.locator('[data-part="stream"][data-kind="ended"]').wait_for()
    page.get_by_role("button", name="Copy").first.wait_for()
    settle(page)
    page.screenshot(path=output)
    return noted(page, output)


def deepest(page: Page, site: str, run: str) -> str:
    """Returns the URL fragment that opens the deepest repair of a wrong program that passed."""
    state = page.request.get(f"{site}/api/v1/runs/{run}/state").json()
    places = {
        wanted: {(p["tree"], p["node"]): p for _, _, kind, p in state["events"] if kind == wanted}
        for wanted in ("node.open", "node.close")
    }
    opened, closed = places["node.open"], places["node.close"]
    repairs = [
        (opened[tree, node]["depth"], tree, node)
        for (tree, node), p in closed.items()
        if p["score"] == 1 and (tree, node) in opened
        and closed.get((tree, opened[tree, node]["parent"]), {"score": 1})["score"] == 0
    ]  # fmt: skip
    if not repairs:  # then the newest program
        repairs = [(0, tree, node) for tree, node in closed]
    _, tree, node = max(repairs)
    return f"#tree={tree}&node={node}"


if __name__ == "__main__":
    main()
