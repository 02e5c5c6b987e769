/** Results of a tree over its budget: best so far over its nodes, in the order of verdicts. Pure. */

/** Returns the closed nodes of a tree in the order of their verdicts. */
function inOrder(tree) {
  return [...tree.nodes.values()].filter((node) => node.closed).sort((a, b) => a.closedSeq - b.closedSeq);
}

/** Returns the largest share of tests that any of the first k nodes passed, for k from 0 to all. */
export function bestSoFar(tree) {
  const best = [0];
  for (const node of inOrder(tree)) best.push(Math.max(best.at(-1), node.fraction ?? 0));
  return best;
}

/**
 * Returns {nodes, solvedAt, tokensToSolved, best, depth, width, tokens} of a tree's first `budget`
 * nodes: `solvedAt` counts nodes up to the first that passed every test, null if none did; `width`
 * is the number of programs written from the problem itself.
 */
export function spent(tree, budget) {
  const nodes = inOrder(tree).slice(0, budget);
  const index = nodes.findIndex((node) => node.score === 1);
  const tokens = (some) => some.reduce((sum, node) => sum + (node.tokens ?? 0), 0);
  return {
    nodes: nodes.length,
    solvedAt: index < 0 ? null : index + 1,
    tokensToSolved: index < 0 ? null : tokens(nodes.slice(0, index + 1)),
    best: nodes.reduce((most, node) => Math.max(most, node.fraction ?? 0), 0),
    depth: nodes.reduce((most, node) => Math.max(most, node.depth), 0),
    width: nodes.filter((node) => node.parent === 0).length,
    tokens: tokens(nodes),
  };
}

/** Returns the tree as of its first `budget` verdicts. */
export function within(tree, budget) {
  const nodes = inOrder(tree).slice(0, budget);
  const ids = new Set(nodes.map((node) => node.id));
  const shown = [...tree.nodes.values()].filter((node) => ids.has(node.id));
  return { ...tree, nodes: new Map(shown.map((node) => [node.id, node])) };
}
