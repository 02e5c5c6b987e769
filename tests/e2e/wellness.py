"""Checks that every page must pass: no broken rule of WCAG, and no horizontal scrolling."""

from __future__ import annotations

from tests.helpers.accessibility import broken_rules

HEIGHT = 900
WIDTHS = (400, 1600)
"""Widths in pixels of a phone and of a wide screen."""
SETTLED = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  done(document.documentElement.scrollWidth - innerWidth))))"""
"""Pixels by which the page is too wide, measured after observers of its size have redrawn."""


def accessibility_errors(page, what: str) -> list[str]:
    """Returns each rule that the page breaks in light or dark, and each width that it does not fit,
    as sentences that begin with `what`. Leaves the page in the other scheme and at its own size."""
    problems = [*too_wide(page), *broken_rules(page), *too_wide(page)]
    return [f"{what}: {problem}" for problem in problems]


def too_wide(page) -> list[str]:
    """Returns each of WIDTHS that the page does not fit, in its current scheme."""
    size = page.viewport_size
    scheme = page.locator("html").get_attribute("data-theme")
    problems = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        if (excess := page.evaluate(SETTLED)) > 0:
            problems.append(f"{scheme}: {excess} pixels wider than {width}")
    page.set_viewport_size(size)
    return problems
