/** A node's program: highlighted, as a diff against its parent, and as the repairs along its path. */

import { diffCounts, diffLines } from "./diff.js";
import { element } from "../lib/dom.js";
import { outcome } from "../stream/fold.js";
import { highlightLines } from "./highlight.js";
import { pathTo } from "../run/lineage.js";
import { words } from "../lib/format.js";

const SIGNS = { same: " ", added: "+", removed: "−" };

/** @param view "program" | "diff" | "path"; `choose(view)` redraws the panel. */
export function programSection(tree, node, view, choose) {
  const parent = tree.nodes.get(node.parent);
  const path = pathTo(tree, node).filter((one) => one.closed);
  const changes = parent?.program === undefined ? null : changesOf(parent, node);
  const views = [["program", "Code"]];
  if (changes) views.push(["diff", labelOf(changes)]);
  if (path.length > 1) views.push(["path", `Path of ${path.length}`]);
  const shown = views.some(([name]) => name === view) ? view : "program";
  const button = ([name, label]) =>
    element(
      "button",
      { type: "button", "aria-pressed": String(name === shown), onclick: () => choose(name) },
      label,
    );
  const title = element("h3", {}, "Program");
  if (views.length > 1) title.append(element("span", { class: "segments" }, views.map(button)));
  const bodies = {
    program: () => programCode(node.program),
    diff: () => diffCode(changes, "Changes against the parent's program"),
    path: () => path.map((one, index) => stage(path[index - 1], one)),
  };
  return element("section", {}, title, bodies[shown]());
}

function changesOf(before, after) {
  return diffLines(before.program.trimEnd(), after.program.trimEnd());
}

function labelOf(lines) {
  const { added, removed } = diffCounts(lines);
  return added + removed ? `Changes +${added} −${removed}` : "No changes";
}

/** Returns one stage of the path: the first program whole, then the changes of each repair. */
function stage(before, node) {
  const lines = before ? changesOf(before, node) : null;
  const what = lines ? labelOf(lines).toLowerCase() : "first program";
  const title = `Node ${node.id}, ${node.agent}: ${words(outcome(node))}, ${what}`;
  const body = lines ? diffCode(lines, `Changes of node ${node.id}`) : programCode(node.program);
  return element("div", { class: "path-stage" }, element("h4", {}, title), body);
}

function programCode(program) {
  if (!program) return element("p", { class: "muted" }, "The answer contains no program.");
  const lines = highlightLines(program.trimEnd()).map((tokens, index) =>
    element("div", { class: "code-line", "data-line": index + 1 }, coloured(tokens)),
  );
  return box("Program", lines);
}

function diffCode(lines, label) {
  const rows = lines.map((line) =>
    element(
      "div",
      { class: `code-line ${line.kind}`, "data-line": line.after ?? "" },
      element(
        "span",
        {},
        element("span", { class: "sign" }, SIGNS[line.kind]),
        ...highlightLines(line.text).map(coloured),
      ),
    ),
  );
  return box(label, rows);
}

function box(label, rows) {
  const about = { class: "code mono", tabindex: 0, role: "group", "aria-label": label };
  return element("div", about, rows);
}

function coloured(tokens) {
  const parts = tokens.map(({ kind, text }) =>
    ["name", "space", "operator", "other"].includes(kind)
      ? text
      : element("span", { class: `t-${kind}` }, text),
  );
  return element("span", {}, parts);
}
