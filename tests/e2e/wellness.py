"""What every page owes its reader: no broken rule of WCAG, and no width that has to be scrolled."""

from __future__ import annotations

from tests.browser.accessibility import broken_rules

HEIGHT = 900
WIDTHS = (400, 1600)
"""Pixels: a phone, and a wide screen."""
SETTLED = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  done(document.documentElement.scrollWidth - innerWidth))))"""
"""By how many pixels the page is too wide, once whatever observes its size has drawn again."""


def faults_of(page, what: str) -> list[str]:
    """Each rule that the page breaks in light or dark, and each width that it does not fit, as
    sentences that begin with `what`. Leaves the page in the other scheme and at its own size."""
    faults = [*too_wide(page), *broken_rules(page), *too_wide(page)]
    return [f"{what}: {fault}" for fault in faults]


def too_wide(page) -> list[str]:
    """Each of WIDTHS that the page does not fit, in the scheme in which it is."""
    size = page.viewport_size
    scheme = page.locator("html").get_attribute("data-theme")
    faults = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        if (excess := page.evaluate(SETTLED)) > 0:
            faults.append(f"{scheme}: {excess} pixels wider than {width}")
    page.set_viewport_size(size)
    return faults
