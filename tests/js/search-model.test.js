import { bestNode, shareOf, spentOf } from "/static/js/run/search-model.js";
import { equal, test } from "./check.js";

const treeOf = (...scores) => ({
  nodes: new Map(
    scores.map((score, index) => [index + 1, { id: index + 1, closed: score !== undefined, score, tokens: 10 }]),
  ),
});

test("the best so far passes most public tests, and is the latest of those that do", () => {
  equal(bestNode(treeOf(0.5, 1, 1, 0, null, undefined)).id, 3);
  equal(bestNode(treeOf(null, undefined)), undefined);
});

test("the use of each limit counts closed nodes only", () => {
  const state = { trees: new Map([[7, treeOf(0.5, null, undefined)]]), stepStartedAt: 1_000, answer: null };
  const rows = spentOf(state, { nodes: 8, tokens: 40, seconds: 10 }, 6_000);
  equal(rows, [
    { name: "nodes", used: 2, most: 8 },
    { name: "tokens", used: 20, most: 40 },
    { name: "seconds", used: 5, most: 10 },
  ]);
  equal(shareOf(rows), 0.5);
  equal(spentOf({ trees: new Map(), answer: null }, { nodes: 8, tokens: null, seconds: null }, 0), [
    { name: "nodes", used: 0, most: 8 },
  ]);
});
