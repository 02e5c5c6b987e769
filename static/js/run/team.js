/** Contributions of each agent of a team, over the trees that are shown. Pure. */

import { pathTo } from "./lineage.js";

/**
 * Returns {trees, solved, agents: [{name, nodes, passed, first, path}], repairs: {by: {of: {tried,
 * done}}}, pathNodes}: `first` counts trees whose first passing node is the agent's; `path` its
 * nodes on the paths from the problem to those nodes; a repair is done when a program that passes
 * is written below one that does not.
 */
export function teamFigures(trees, names) {
  const agents = new Map(names.map((name) => [name, { name, nodes: 0, passed: 0, first: 0, path: 0 }]));
  const repairs = Object.fromEntries(
    names.map((by) => [by, Object.fromEntries(names.map((of) => [of, { tried: 0, done: 0 }]))]),
  );
  let solved = 0;
  let pathNodes = 0;
  for (const tree of trees) {
    const winner = firstPassed(tree);
    if (winner) {
      solved += 1;
      agents.get(winner.agent).first += 1;
      for (const node of pathTo(tree, winner)) {
        agents.get(node.agent).path += 1;
        pathNodes += 1;
      }
    }
    for (const node of tree.nodes.values()) {
      const mine = agents.get(node.agent);
      mine.nodes += 1;
      mine.passed += node.score === 1;
      const parent = tree.nodes.get(node.parent);
      if (!parent || !node.closed || node.score === null || parent.score === 1) continue;
      const cell = repairs[node.agent][parent.agent];
      cell.tried += 1;
      cell.done += node.score === 1;
    }
  }
  return { trees: trees.length, solved, agents: [...agents.values()], repairs, pathNodes };
}

/** Returns the node whose program passed first, in the order of `closedSeq`; null if none did. */
export function firstPassed(tree) {
  let first = null;
  for (const node of tree.nodes.values()) {
    if (node.score === 1 && (!first || node.closedSeq < first.closedSeq)) first = node;
  }
  return first;
}
