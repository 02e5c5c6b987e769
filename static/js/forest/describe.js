/** One-line descriptions of nodes and trees, and the most informative node of a tree. Pure. */

import { outcome } from "../stream/fold.js";
import { count, number, percent, words } from "../lib/format.js";

/** Returns the node to open a tree with: the first that passed, else the newest closed one. */
export function defaultNode(tree) {
  const closed = [...tree.nodes.values()].filter((node) => node.closed);
  return closed.find((node) => node.score === 1) ?? closed.at(-1) ?? null;
}

/** Describes one node in one line, for the tooltip and the list. */
export function describe(node) {
  const parts = [`Node ${node.id}`, node.agent, words(outcome(node))];
  // Another program's answer has a reward, neither tests nor a choice that led to it.
  const isAnswer = node.tests?.length === 0 && !Object.keys(node.draws ?? {}).length;
  if (node.closed && isAnswer) parts[2] = node.score === null ? "no reward" : `reward ${number(node.score)}`;
  else if (node.closed && node.score === null) parts[2] = "sandbox failure";
  else if (node.closed) parts.push(`${percent(node.fraction, 0)} of tests`);
  if (node.advantage !== null) parts.push(`advantage ${number(node.advantage)}`);
  return parts.join(" · ");
}

export function describeTree(tree) {
  const end = tree.solved ? "solved" : tree.closed ? "unsolved" : "growing";
  return `${tree.problem} · ${count(tree.nodes.size, "node")} · ${end}`;
}
