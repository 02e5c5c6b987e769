/** Reward and advantage of a node as sums of their terms, and the update that learned from it. */

import { creditTerms } from "./credit.js";
import { element } from "../lib/dom.js";
import { count, number, words } from "../lib/format.js";
import { trainedBy } from "../run/lineage.js";

/** @param context {state, config, formula}; `toStep(step)` shows the trees of a step. */
export function creditSection(tree, node, { state, config, formula }, toStep) {
  if (!config.credit) return outsideCredit(node);
  const terms = creditTerms(tree, node, config.credit, formula);
  if (!terms) return "";
  return element(
    "section",
    {},
    element("h3", {}, "Credit"),
    element("table", { class: "terms" }, element("tbody", {}, rows(terms, config.credit))),
    updateText(state, tree, node, toStep),
  );
}

/** Another program's credit: it says what it gave, not how. */
function outsideCredit(node) {
  if (node.advantage === null) return "";
  const both = [row("Reward", number(node.shaped), ""), row("Advantage", signed(node.advantage), "by the program that trains", true)];
  return element("section", {}, element("h3", {}, "Credit"), element("table", { class: "terms" }, element("tbody", {}, both)));
}

function rows(terms, { shaping_gamma: gamma, shaping_lambda: lambda }) {
  const { parent, siblings, siblingCount, baseline, group } = terms;
  const result = [row("Raw score", number(terms.raw), "from the tests")];
  for (const [name, value] of terms.gates) result.push(row(`Gate: ${words(name)}`, `× ${number(value)}`, "of the score, before shaping"));
  if (siblings !== null || parent !== null) {
    const parts = [];
    if (parent !== null) parts.push(`parent ${number(parent)}`);
    if (siblings !== null) parts.push(`mean of ${count(siblingCount, "sibling")} ${number(siblings)}`);
    const both = parts.length === 2 ? `, λ = ${lambda}` : "";
    result.push(row("Baseline", number(baseline), parts.join(", ") + both));
  } else result.push(row("Baseline", "–", "no parent and no siblings"));
  result.push(row("Shaping", signed(terms.shaping), `γ = ${gamma} × (score − baseline)`));
  for (const [name, value] of terms.parts) result.push(row(`Part: ${words(name)}`, signed(value), "weight × part"));
  if (terms.shaped === null) {
    const why = terms.ungraded ? "not learned from: the judge gave it, or what it repairs, no grade" : "pending until the step's trees are credited";
    result.push(row("Shaped reward", "–", why));
    return result;
  }
  if (terms.penalty) result.push(row("Overlong penalty", signed(terms.penalty), "close to the token limit"));
  result.push(row("Shaped reward", number(terms.shaped), "", true));
  const whom = group.ofAgent ? "of this agent in this tree" : "of this tree";
  result.push(
    row("Group", `${number(group.mean)} ± ${number(group.deviation)}`, `mean and deviation over ${count(group.count, "node")} ${whom}`),
  );
  result.push(row("Advantage", signed(group.advantage), explanation(group), true));
  return result;
}

function explanation(group) {
  if (group.explained === null) return `by ${group.method}, from more than this tree`;
  if (group.form === "centred") return "shaped − mean";
  return group.deviation > 0 ? "(shaped − mean) / deviation" : "all rewards are equal";
}

function row(name, value, why, strong = false) {
  return element(
    "tr",
    { class: strong ? "strong" : null },
    element("th", { scope: "row" }, name),
    element("td", { class: "right" }, value),
    element("td", { class: "muted" }, why),
  );
}

function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}

function updateText(state, tree, node, toStep) {
  const text = (label) => element("p", { class: "small fed" }, label);
  if (tree.filtered) return text("Not used for training: all nodes of its tree have the same score.");
  if (node.advantage === null) return text("Not used for training yet.");
  const { update, checkpoint } = trainedBy(state, tree, node);
  if (update === undefined) return text("This log does not record which update used it.");
  if (!update) return text("Not used for training yet: it is in the agent's buffer, or the agent is frozen.");
  const others = update.trees.length > 1 ? `, with ${count(update.trees.length - 1, "other tree")}` : "";
  const link = (step, label) =>
    element("button", { type: "button", class: "link", onclick: () => toStep(step) }, label);
  return element(
    "p",
    { class: "small fed" },
    "Used in the update of ",
    link(update.step, `${update.agent} at step ${update.step}`),
    ` to version ${update.version ?? "–"}${others}`,
    checkpoint ? ", first saved in " : ", in no checkpoint yet",
    checkpoint ? link(checkpoint.step, checkpoint.path) : null,
    ".",
  );
}
