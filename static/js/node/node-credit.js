/** Reward and advantage of a node as sums of their terms, and the update that learned from it. */

import { creditTerms } from "./credit.js";
import { element } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { fedBy } from "../run/lineage.js";

/** @param context {state, config}; `toStep(step)` shows the trees of a step. */
export function creditSection(tree, node, { state, config }, toStep) {
  const terms = creditTerms(tree, node, config.credit);
  if (!terms) return "";
  return element(
    "section",
    {},
    element("h3", {}, "Credit"),
    element("table", { class: "terms" }, element("tbody", {}, rows(terms, config.credit))),
    fedText(state, tree, node, toStep),
  );
}

function rows(terms, { shaping_gamma: gamma, shaping_lambda: lambda }) {
  const { parent, siblings, siblingCount, baseline, group } = terms;
  const found = [row("Raw score", number(terms.raw), "from the tests")];
  if (baseline !== terms.raw || siblings !== null || parent !== null) {
    const parts = [];
    if (parent !== null) parts.push(`parent ${number(parent)}`);
    if (siblings !== null) parts.push(`mean of ${count(siblingCount, "sibling")} ${number(siblings)}`);
    const both = parts.length === 2 ? `, λ = ${lambda}` : "";
    found.push(row("Baseline", number(baseline), parts.join(", ") + both));
  } else found.push(row("Baseline", "–", "an only child of the problem has none"));
  found.push(row("Shaping", signed(terms.shaping), `γ = ${gamma} × (score − baseline)`));
  if (terms.shaped === null) {
    found.push(row("Shaped reward", "–", "comes when the step's trees are credited"));
    return found;
  }
  if (terms.penalty) found.push(row("Overlong penalty", signed(terms.penalty), "close to the token limit"));
  found.push(row("Shaped reward", number(terms.shaped), "", true));
  const whom = group.ofAgent ? "of this agent in this tree" : "of this tree";
  found.push(
    row("Group", `${number(group.mean)} ± ${number(group.deviation)}`, `mean and deviation over ${count(group.count, "node")} ${whom}`),
  );
  found.push(row("Advantage", signed(group.advantage), formula(group), true));
  return found;
}

function formula(group) {
  if (group.explained === null) return `by ${group.method}, which sees more than this tree`;
  if (group.method === "dr_grpo") return "shaped − mean";
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

function fedText(state, tree, node, toStep) {
  const text = (said) => element("p", { class: "small fed" }, said);
  if (tree.filtered) return text("Left out of learning: all nodes of its tree scored alike.");
  if (node.advantage === null) return text("Not learned from yet.");
  const { update, checkpoint } = fedBy(state, tree, node);
  if (update === undefined) return text("This log does not say which update learned from it.");
  if (!update) return text("Not learned from yet: it waits in the agent's buffer, or the agent is frozen.");
  const with_ = update.trees.length > 1 ? `, with ${count(update.trees.length - 1, "other tree")}` : "";
  const link = (step, said) =>
    element("button", { type: "button", class: "link", onclick: () => toStep(step) }, said);
  return element(
    "p",
    { class: "small fed" },
    "Learned from in the update of ",
    link(update.step, `${update.agent} at step ${update.step}`),
    ` to version ${update.version}${with_}`,
    checkpoint ? ", held first by " : ", in no checkpoint yet",
    checkpoint ? link(checkpoint.step, checkpoint.path) : null,
    ".",
  );
}
