"""Takes the README's picture: the run page of a real run on a running server.

    .venv/bin/python docs/screenshot.py SIGN_IN_LINK RUN_ID docs/run.png

The picture shows the tree with the most refinements in focus. It is taken only of a page that is
up to date with the log, so it never shows less than there is.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

SIZE = {"width": 1440, "height": 1560}
SCALE = 1.5  # sharp on dense screens, and still a small file
ARRIVAL_MS = 60_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("link", help="one-time sign-in link, as the server prints it")
    parser.add_argument("run", help="id of the run")
    parser.add_argument("output", type=Path, help="the PNG to write")
    parser.add_argument("--dark", action="store_true", help="take the dark theme")
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
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
        take(page, given.link, given.run, given.output)
        browser.close()


def take(page: Page, link: str, run: str, output: Path) -> None:
    """Sign in, open the run, put its deepest tree in focus and write the picture."""
    parts = urlsplit(link)
    page.goto(link)
    page.goto(f"{parts.scheme}://{parts.netloc}/runs/{run}/{deepest(page, run, parts)}")
    page.locator('[data-part="stream"][data-kind="live"], [data-kind="ended"]').wait_for(
        timeout=ARRIVAL_MS
    )
    page.locator('[data-metric="validation.agent"] canvas').first.wait_for(timeout=ARRIVAL_MS)
    page.wait_for_timeout(1000)
    page.screenshot(path=output)


def deepest(page: Page, run: str, parts) -> str:
    """The part of the address that opens the deepest repair of a wrong program that passed."""
    state = page.request.get(f"{parts.scheme}://{parts.netloc}/api/v1/runs/{run}/state").json()
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
    if not repairs:
        return ""
    _, tree, node = max(repairs)
    return f"#tree={tree}&node={node}"


if __name__ == "__main__":
    main()
