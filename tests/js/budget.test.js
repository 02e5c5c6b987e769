import { bestSoFar, spent, within } from "/static/js/run/budget.js";
import { equal, test } from "./check.js";

/** Nodes as [id, parent, depth, verdict order or 0, share of tests passed]. */
function treeOf(rows) {
  const nodes = rows.map(([id, parent, depth, order, fraction]) => [
    id,
    { id, parent, depth, closed: order > 0, closedSeq: order, fraction, score: fraction === 1 ? 1 : 0, tokens: 10 * id },
  ]);
  return { id: 7, nodes: new Map(nodes) };
}

const TREE = treeOf([[1, 0, 1, 2, 0.5], [2, 0, 1, 1, 0.25], [3, 1, 2, 4, 1], [4, 0, 1, 3, 0], [5, 3, 3, 0, 0]]);

test("the best so far never falls, and follows the verdicts, not the openings", () => {
  equal(bestSoFar(TREE), [0, 0.25, 0.5, 0.5, 1]);
  equal(bestSoFar(treeOf([])), [0]);
});

test("spent counts up to the first node that passed every test", () => {
  const result = spent(TREE, 4);
  equal([result.nodes, result.solvedAt, result.tokensToSolved, result.tokens], [4, 4, 100, 100]);
  equal([result.best, result.depth, result.width], [1, 2, 3]);
});

test("a smaller budget excludes later verdicts", () => {
  const result = spent(TREE, 2);
  equal([result.solvedAt, result.tokensToSolved, result.best, result.depth], [null, null, 0.5, 1]);
  equal([...within(TREE, 2).nodes.keys()], [1, 2]);
  equal([...within(TREE, 0).nodes.keys()], []);
  equal([...TREE.nodes.keys()].length, 5);
});
