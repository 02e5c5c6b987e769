/** One node in full: what was written, how it was judged, what credit it got, and why here. */

import { diffCounts, diffLines } from "./diff.js";
import { element } from "./dom.js";
import { outcome } from "./fold.js";
import { number, percent, seconds, words } from "./format.js";
import { highlightLines } from "./highlight.js";
import { markIcon } from "./marks.js";
import { thompsonSection } from "./thompson.js";

const OUTCOMES = {
  open: "being written",
  passed: "passed all tests",
  partial: "passed some tests",
  failed: "passed no test",
  failure: "sandbox failure",
};

export class NodePanel {
  /** @param host the panel's element; `onClose()` is called by its button. */
  constructor(host, onClose) {
    this.host = host;
    this.onClose = onClose;
    this.view = "program";
    this.shown = null;
  }

  clear() {
    this.shown = null;
    this.host.hidden = true;
    this.host.replaceChildren();
  }

  /**
   * Shows a node; drawn again only when it says something new.
   *
   * @param lookOf node -> {shape, hue, outcome, fraction}, as in the forest.
   */
  show(tree, node, lookOf, palette) {
    const parent = tree.nodes.get(node.parent) ?? null;
    const version = [tree.id, node.id, node.closed, node.advantage, parent?.closed, palette].map(
      (part) => (typeof part === "object" ? palette.text : String(part)),
    );
    const key = `${version.join()} ${this.view}`;
    if (this.shown === key) return;
    const place = this.shown?.startsWith(`${tree.id},${node.id},`) ? this.host.scrollTop : 0;
    this.shown = key;
    this.host.hidden = false;
    const again = (view) => {
      this.view = view;
      this.show(tree, node, lookOf, palette);
    };
    this.host.replaceChildren(
      this.#head(node, lookOf, palette),
      facts(node),
      node.error ? element("section", {}, element("pre", { class: "code" }, node.error)) : "",
      node.closed ? programSection(node, parent, this.view, again) : waiting(),
      node.closed ? testsSection(node) : "",
      thompsonSection(node),
    );
    this.host.scrollTop = place;
  }

  #head(node, lookOf, palette) {
    return element(
      "div",
      { class: "card-head" },
      element(
        "div",
        { class: "panel-title" },
        markIcon(lookOf(node), palette, 30),
        element(
          "div",
          {},
          element("h2", { id: "node-title" }, `Node ${node.id} by ${node.agent}`),
          element("div", { class: "muted small" }, headline(node)),
        ),
      ),
      element("span", { class: "spring" }),
      element(
        "button",
        { class: "button icon-button", "aria-label": "Close the node", onclick: this.onClose },
        "✕",
      ),
    );
  }
}

function headline(node) {
  const how = node.parent === 0 ? "generated from the problem" : `refines node ${node.parent}`;
  return `${OUTCOMES[outcome(node)]}, ${how}`;
}

function waiting() {
  return element("section", { class: "muted" }, "The agent is writing this program now.");
}

function facts(node) {
  const rows = [["Depth", node.depth]];
  if (node.closed) {
    rows.push(
      ["Verdict", words(node.verdict)],
      ["Score", number(node.score)],
      ["Tests passed", percent(node.fraction, 0)],
      ["Shaped reward", number(node.shaped)],
      ["Advantage", number(node.advantage)],
      ["Policy version", node.policyVersion],
      ["Tokens", node.tokens],
      ["Mean log-prob", number(node.meanLogprob)],
      ["Ended by", words(node.stop)],
      ["Took", seconds(node.seconds)],
    );
  }
  const cells = rows.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value))),
  );
  return element("section", {}, element("dl", { class: "facts" }, cells));
}

function programSection(node, parent, view, again) {
  const lines = parent?.program === undefined ? null : diffLines(parent.program.trimEnd(), node.program.trimEnd());
  const showDiff = lines && view === "diff";
  const choose = (name, label) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String((name === "diff") === Boolean(showDiff)),
        onclick: () => again(name),
      },
      label,
    );
  const title = element("h3", {}, "Program");
  if (lines) {
    const { added, removed } = diffCounts(lines);
    const label = added + removed ? `Changes +${added} −${removed}` : "No change";
    title.append(
      element("span", { class: "segments" }, choose("program", "Code"), choose("diff", label)),
    );
  }
  return element("section", {}, title, showDiff ? diffCode(lines) : programCode(node.program));
}

function programCode(program) {
  if (!program) return element("p", { class: "muted" }, "The answer held no program.");
  const lines = highlightLines(program.trimEnd()).map((tokens, index) =>
    element("div", { class: "code-line", "data-line": index + 1 }, coloured(tokens)),
  );
  return element("div", { class: "code mono", tabindex: 0, role: "group", "aria-label": "Program" }, lines);
}

function diffCode(lines) {
  const signs = { same: " ", added: "+", removed: "−" };
  const rows = lines.map((line) =>
    element(
      "div",
      { class: `code-line ${line.kind}`, "data-line": line.after ?? "" },
      element(
        "span",
        {},
        element("span", { class: "sign" }, signs[line.kind]),
        ...highlightLines(line.text).map(coloured),
      ),
    ),
  );
  const label = "Changes against the parent's program";
  return element("div", { class: "code mono", tabindex: 0, role: "group", "aria-label": label }, rows);
}

function coloured(tokens) {
  const parts = tokens.map(({ kind, text }) =>
    ["name", "space", "operator", "other"].includes(kind)
      ? text
      : element("span", { class: `t-${kind}` }, text),
  );
  return element("span", {}, parts);
}

function testsSection(node) {
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
