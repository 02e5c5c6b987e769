"""What axe-core finds on a page by the rules of WCAG 2.2 AA, in light and in dark.

The two differ in colours alone (a page's elements hang on its data), so a page is asked all rules
in one of them, and in the other those that look at colours.
"""

from __future__ import annotations

from pathlib import Path

AXE = (Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js").read_text()
ALL_RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
OF_COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
ASK = """async (runOnly) => {
  const { violations } = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((n) =>
    `${n.target.join(" ")} (${n.any.map((check) => check.message).join("; ")})`).join(" | ")}`);
}"""


def broken_rules(page) -> list[str]:
    """Each rule that is broken, with the scheme and the first places; leaves the page in the other
    scheme, in which the next one is asked all rules: to change is what takes long."""
    page.evaluate(AXE)
    scheme = page.locator("html[data-theme]").get_attribute("data-theme")
    told = _told(page, scheme, ALL_RULES)
    other = "dark" if scheme == "light" else "light"
    page.emulate_media(color_scheme=other)
    page.locator(f'html[data-theme="{other}"]').wait_for(state="attached")
    return told + _told(page, other, OF_COLOURS)


def _told(page, scheme: str, rules: dict[str, object]) -> list[str]:
    return [f"{scheme}: {rule}" for rule in page.evaluate(ASK, rules)]
