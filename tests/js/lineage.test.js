import { childrenOf, descendants, trainedBy, pathTo } from "/static/js/run/lineage.js";
import { equal, test } from "./check.js";

function tree() {
  const nodes = [[1, 0], [2, 0], [3, 1], [4, 3], [5, 1], [6, 2]];
  return {
    id: 7,
    step: 2,
    nodes: new Map(nodes.map(([id, parent]) => [id, { id, parent, agent: id % 2 ? "oak" : "fern" }])),
  };
}

test("a path leads from below the root to the node", () => {
  const t = tree();
  equal(pathTo(t, t.nodes.get(4)).map((node) => node.id), [1, 3, 4]);
  equal(childrenOf(t, t.nodes.get(1)).map((node) => node.id), [3, 5]);
  equal([...descendants(t, 1)], [3, 4, 5]);
  equal([...descendants(t, 0)].length, 6);
});

test("trainedBy returns the update that names the tree, and the first checkpoint after it", () => {
  const t = tree();
  const updates = [
    { agent: "oak", step: 2, trees: [3] },
    { agent: "oak", step: 3, trees: [7, 9], shared_with: ["ash"] },
  ];
  const checkpoints = [{ step: 2, path: "2" }, { step: 4, path: "4" }];
  const lineage = trainedBy({ updates, checkpoints }, t, t.nodes.get(1));
  equal([lineage.update.step, lineage.checkpoint.path], [3, "4"]);
  equal(trainedBy({ updates, checkpoints }, t, { agent: "ash" }).update.step, 3);
  equal(trainedBy({ updates, checkpoints }, t, t.nodes.get(2)).update, null);
});

test("an old log does not record which trees an update used", () => {
  const t = tree();
  const updates = [{ agent: "oak", step: 2 }, { agent: "oak", step: 3 }];
  const lineage = trainedBy({ updates, checkpoints: [] }, t, t.nodes.get(1));
  equal(lineage.update === undefined, true);
});

test("a path with a cycle ends", () => {
  const nodes = [[1, 1], [2, 3], [3, 2], [0, 0]].map(([id, parent]) => [id, { id, parent }]);
  const t = { nodes: new Map(nodes) };
  equal([1, 2, 0].map((id) => pathTo(t, t.nodes.get(id)).map((node) => node.id)), [[1], [3, 2], [0]]);
});
