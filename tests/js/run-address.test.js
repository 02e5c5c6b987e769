import { RunAddress } from "/static/js/run/run-address.js";
import { emptyState, fold } from "/static/js/stream/fold.js";
import { equal, test } from "./check.js";

const NONE = { agent: "", score: "", verdict: "", depth: "", q: "", step: "" };

/** An opened tree with nodes, as events from `seq` on. */
function treeEvents(seq, tree, nodes) {
  const opened = { agent: "oak", parent: 0, depth: 1, draws: {} };
  return [
    [seq, seq, "tree.open", { tree, step: 1, problem: "p", statement: "s" }],
    ...nodes.map((node, index) => [seq + index + 1, seq, "node.open", { tree, node, ...opened }]),
  ];
}

/** A page with this address; `load` loads older trees. */
function pageAt(hash, load) {
  const live = emptyState();
  const asked = [];
  const forest = {
    focus: null,
    selected: null,
    setFocus(tree, node = null) {
      Object.assign(forest, { focus: tree, selected: node });
      address.chosen();
    },
  };
  let filters = NONE;
  history.replaceState(null, "", `${location.pathname}${hash}`);
  const address = new RunAddress({
    forest,
    machine: { active: false },
    loads: { tree: async (id) => (asked.push(id), load(id)) },
    live: () => live,
    shown: () => live,
    filters: () => filters,
    setFilters: (given) => (filters = given),
  });
  return {
    address,
    forest,
    asked,
    take: (events) => (fold(events, live), address.follow()),
    shown: () => [forest.focus?.id ?? null, forest.selected?.id ?? null],
  };
}

const missing = () => {
  throw Object.assign(new Error("no such tree"), { status: 404 });
};

test("what the address names is opened when the log comes in one piece", async () => {
  const page = pageAt("#tree=7&node=2", missing);
  await page.take(treeEvents(1, 7, [1, 2]));
  equal([page.shown(), location.hash, page.asked], [[7, 2], "#tree=7&node=2", []]);
});

test("and when it comes in parts: the tree after another one, the node after its tree", async () => {
  const page = pageAt("#tree=7&node=2", missing);
  await page.take(treeEvents(1, 5, [1]));
  equal([page.shown(), location.hash], [[null, null], "#tree=7&node=2"]);
  await page.take(treeEvents(3, 7, [1]));
  equal([page.shown(), location.hash], [[7, null], "#tree=7&node=2"]);
  await page.take(treeEvents(5, 7, [2]).slice(1));
  equal([page.shown(), location.hash, page.asked], [[7, 2], "#tree=7&node=2", [7]]);
});

test("an older tree that could not be loaded is requested again", async () => {
  const older = fold(treeEvents(1, 3, [1]), emptyState()).trees.get(3);
  const answers = [() => { throw new Error("Failed to fetch"); }, () => older];
  const page = pageAt("#tree=3&node=1", () => answers.shift()());
  await page.take(treeEvents(9, 7, [1]));
  await page.address.follow();
  equal([page.shown(), page.asked.length], [[null, null], 1], "not at once:");
  page.address.awaited.retryAt = 0;
  await page.address.follow();
  equal([page.shown(), page.asked.length], [[3, 1], 2]);
});

test("the reader's own choice is not taken back by what arrives later", async () => {
  const page = pageAt("#tree=7&node=2", missing);
  await page.take(treeEvents(1, 7, [1]));
  page.forest.setFocus(page.forest.focus, page.forest.focus.nodes.get(1));
  await page.take(treeEvents(3, 7, [2]).slice(1));
  equal([page.shown(), location.hash], [[7, 1], "#tree=7&node=1"]);
});
