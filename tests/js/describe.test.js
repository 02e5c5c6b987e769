import { describe, describeTree, defaultNode } from "/static/js/forest/describe.js";
import { equal, test } from "./check.js";

const node = (id, more) => ({ id, agent: "oak", closed: true, score: 0, fraction: 0.5, advantage: null, verdict: "wrong_answer", ...more });
const tree = (nodes, more) => ({ problem: "sort", nodes: new Map(nodes.map((one) => [one.id, one])), ...more });

test("a tree is opened with the first node that passed, else with the newest that is written", () => {
  const [first, second, open] = [node(1), node(2), node(3, { closed: false, score: null })];
  equal(defaultNode(tree([first, second, open])).id, 2);
  equal(defaultNode(tree([first, node(2, { score: 1 }), node(3, { score: 1 })])).id, 2);
  equal(defaultNode(tree([open])), null);
});

test("a node's description has its outcome, share of tests and advantage", () => {
  equal(describe(node(4, { advantage: -0.5 })), "Node 4 · oak · partial · 50 % of tests · advantage −0.5");
  equal(describe(node(4, { score: null, verdict: "sandbox_failure" })), "Node 4 · oak · sandbox failure");
});

test("a tree's description has its progress", () => {
  equal(describeTree(tree([node(1)], { closed: true, solved: true })), "sort · 1 node · solved");
  equal(describeTree(tree([node(1), node(2)], { closed: true })), "sort · 2 nodes · unsolved");
  equal(describeTree(tree([], {})), "sort · 0 nodes · growing");
});
