/** Contributions of each agent of a team, over the trees that are shown. Pure. */

import { pathTo } from "./lineage.js";

/**
 * Returns {trees, solved, agents: [{name, nodes, passed, first, path}], repairs: {by: {of: {tried,
 * done}}}, fresh: {tried, done}, pathNodes}: `first` counts trees whose first passing node is the
 * agent's; `path` its nodes on the paths from the problem to those nodes; a repair is done when a
 * program that passes is written below one that does not; a fresh answer is a child of the problem.
 */
export function teamFigures(trees, names) {
  const agents = new Map(names.map((name) => [name, { name, nodes: 0, passed: 0, first: 0, path: 0 }]));
  const repairs = Object.fromEntries(
    names.map((by) => [by, Object.fromEntries(names.map((of) => [of, { tried: 0, done: 0 }]))]),
  );
  const fresh = { tried: 0, done: 0 };
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
      if (!node.closed || node.score === null || parent?.score === 1) continue;
      const cell = parent ? repairs[node.agent][parent.agent] : fresh;
      cell.tried += 1;
      cell.done += node.score === 1;
    }
  }
  return { trees: trees.length, solved, agents: [...agents.values()], repairs, fresh, pathNodes };
}

/** Returns the sum of all repairs, {tried, done}. */
export function allRepairs({ repairs }) {
  const cells = Object.values(repairs).flatMap((row) => Object.values(row));
  const sum = (name) => cells.reduce((total, cell) => total + cell[name], 0);
  return { tried: sum("tried"), done: sum("done") };
}

const Z95 = 1.96;

/**
 * Returns {ratio, low, high}: the chance that a repair is right over the chance that a fresh answer
 * is, with its 95 % interval (Katz et al., Biometrics 34, 1978: normal in the logarithm); null while
 * either has none that is right.
 */
export function repairRatio(repaired, fresh) {
  if (!repaired.done || !fresh.done) return null;
  const ratio = repaired.done / repaired.tried / (fresh.done / fresh.tried);
  const variance = 1 / repaired.done - 1 / repaired.tried + 1 / fresh.done - 1 / fresh.tried;
  const factor = Math.exp(Z95 * Math.sqrt(variance));
  return { ratio, low: ratio / factor, high: ratio * factor };
}

/** Returns the node whose program passed first, in the order of `closedSeq`; null if none did. */
export function firstPassed(tree) {
  let first = null;
  for (const node of tree.nodes.values()) {
    if (node.score === 1 && (!first || node.closedSeq < first.closedSeq)) first = node;
  }
  return first;
}
