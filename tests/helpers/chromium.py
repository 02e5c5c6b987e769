"""A real Chromium, and a page that records what goes wrong on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.helpers.waiting import eventually, patience

LOCATOR_MS = 30_000
"""Playwright's own deadline for a locator, here also for an expectation; both times patience."""

NAMES = (
    "chromium-headless-shell",  # without windows and menus: two thirds of the CPU time
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
)
WITHOUT = (
    "PreloadTopChromeWebUI",  # a process per page, for menus that no test opens
    # Playwright's own list, repeated because Chromium uses only the last list it gets.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
)
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(WITHOUT)}",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's own Chromium.

    Raises:
        FileNotFoundError: Chromium is not installed.
    """
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        raise FileNotFoundError(
            f"no browser among {', '.join(NAMES)} on PATH; on Debian: "
            "apt-get install chromium-headless-shell"
        )
    expect.set_options(timeout=LOCATOR_MS * patience())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def a_context(browser: Browser, **options: Any) -> BrowserContext:
    """A new context, with Playwright's deadlines times patience. Motion is reduced: animations of
    a live run repaint sixty times a second, here on the CPU."""
    context = browser.new_context(**{"reduced_motion": "reduce", **options})
    context.set_default_timeout(LOCATOR_MS * patience())
    return context


Share = tuple[float, float]
"""A place in a box: shares of its width and height."""


def drag(page: Page, target: Locator, start: Share, end: Share) -> None:
    """Drags the mouse over `target`; again if it moved meanwhile: what loads above shifts it."""

    def dragged() -> bool:
        box = target.bounding_box()
        places = [
            (box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in (start, end)
        ]
        page.mouse.move(*places[0])
        page.mouse.down()
        page.mouse.move(*places[1], steps=3)
        stands_still = target.bounding_box() == box
        if not stands_still:
            page.mouse.move(*places[0])  # of no length, it does nothing
        page.mouse.up()
        return stands_still

    target.scroll_into_view_if_needed()
    eventually(dragged, "a drag over something that stands still")


@dataclass
class PageErrors:
    """Console errors, thrown errors, policy violations and foreign requests of a page."""

    recorded: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Texts of faults that a test causes on purpose, such as a lost connection."""

    def watch(self, page: Page, origin: str) -> None:
        page.on("console", lambda m: self._record(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self._record(str(error)))
        page.on("request", lambda r: self._check(r.url, origin))

    def _check(self, url: str, origin: str) -> None:
        if not url.startswith((origin, origin.replace("http", "ws", 1), "data:", "blob:")):
            self._record(f"foreign request: {url}")

    def _record(self, text: str) -> None:
        if not any(part in text for part in self.expected):
            self.recorded.append(text)
