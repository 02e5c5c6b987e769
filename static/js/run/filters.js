/** Filters of nodes: by agent, verdict, score, depth, step and text. Pure; kept in the address. */

import { outcome } from "../stream/fold.js";

export const FIELDS = ["agent", "verdict", "score", "depth", "step", "q"];
export const SCORES = { passed: "passed", partial: "some tests", failed: "no tests", failure: "sandbox failure", open: "in progress" };

/** Returns the filters of an address, all of them strings; "" filters nothing. */
export function readFilters(parameters) {
  return Object.fromEntries(FIELDS.map((name) => [name, parameters.get(name) ?? ""]));
}

/** Writes the filters that are set. */
export function writeFilters(filters, parameters) {
  for (const name of FIELDS) if (filters[name]) parameters.set(name, filters[name]);
}

export function hasFilters(filters) {
  return FIELDS.some((name) => filters[name]);
}

/** Returns {from, to} of "12" or "3-9"; null if it names no step. */
export function stepsOf({ step }) {
  const match = /^\s*(\d{1,9})\s*(?:[-–]\s*(\d{1,9})\s*)?$/.exec(step);
  if (!match) return null;
  const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
  return from && to >= from ? { from, to } : null;
}

/** Returns a predicate of nodes: (tree, node) -> boolean. */
export function matcher(filters) {
  const { agent, verdict, score, depth } = filters;
  const words = filters.q.trim().toLowerCase();
  const number = words.replace(/^#/, "");
  return (tree, node) => {
    if (agent && node.agent !== agent) return false;
    if (verdict && node.verdict !== verdict) return false;
    if (score && outcome(node) !== score) return false;
    if (depth && node.depth !== Number(depth)) return false;
    if (!words) return true;
    if (/^\d+$/.test(number)) return node.id === Number(number) || tree.id === Number(number);
    return [node.program, node.error, tree.problem, tree.statement].some((text) =>
      text?.toLowerCase().includes(words),
    );
  };
}

/** Returns {trees, nodes, ids: Map(tree id -> Set of node ids)} of all matches. */
export function findMatches(trees, matches) {
  const ids = new Map();
  let nodes = 0;
  for (const tree of trees) {
    const mine = new Set();
    for (const node of tree.nodes.values()) if (matches(tree, node)) mine.add(node.id);
    if (mine.size) ids.set(tree.id, mine);
    nodes += mine.size;
  }
  return { trees: ids.size, nodes, ids };
}
