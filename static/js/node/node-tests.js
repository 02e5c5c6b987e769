/** Public tests of a node: input, expected, actual. */

import { element } from "../lib/dom.js";
import { words } from "../lib/format.js";

export function testsSection(node) {
  const passed = node.tests.filter((test) => test.verdict === "passed").length;
  return element(
    "section",
    {},
    element("h3", {}, `Public tests: ${passed} of ${node.tests.length} passed`),
    ...node.tests.map(testCard),
  );
}

function testCard(test, index) {
  const rows = [
    ["input", test.input],
    ["expected", test.expected],
    ["actual", test.actual],
    ["error", test.error],
  ].filter(([, value]) => value);
  const sign = test.verdict === "passed" ? "✓" : "✗";
  return element(
    "div",
    { class: "test" },
    element(
      "span",
      { class: "verdict", "data-verdict": test.verdict },
      `${sign} Test ${index + 1}: ${words(test.verdict)}`,
    ),
    element(
      "dl",
      {},
      rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    ),
  );
}
