"""axe-core's violations of WCAG 2.2 AA on a page, in its light and its dark colour scheme.

The schemes differ only in colours (a page's elements depend on its data), so all rules run in one
scheme and only the colour rules in the other.
"""

from __future__ import annotations

from pathlib import Path

AXE = (Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js").read_text()
ALL_RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
OF_COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
EVALUATE_RULES = """async (runOnly) => {
  const { violations } = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((n) =>
    `${n.target.join(" ")} (${n.any.map((check) => check.message).join("; ")})`).join(" | ")}`);
}"""


def broken_rules(page) -> list[str]:
    """Returns each broken rule with its scheme and its first elements. Leaves the page in the other
    scheme, in which the next call runs all rules: switching the scheme is the slow part."""
    page.evaluate(AXE)
    scheme = page.locator("html[data-theme]").get_attribute("data-theme")
    result = _violations(page, scheme, ALL_RULES)
    other = "dark" if scheme == "light" else "light"
    page.emulate_media(color_scheme=other)
    page.locator(f'html[data-theme="{other}"]').wait_for(state="attached")
    return result + _violations(page, other, OF_COLOURS)


def _violations(page, scheme: str, rules: dict[str, object]) -> list[str]:
    return [f"{scheme}: {rule}" for rule in page.evaluate(EVALUATE_RULES, rules)]
