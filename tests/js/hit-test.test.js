import { DrawnNodes } from "/static/js/forest/hit-test.js";
import { equal, test } from "./check.js";

function three() {
  const drawnNodes = new DrawnNodes({ id: 7 }, 5, 4);
  const nodes = [1, 2, 3].map((id) => ({ id }));
  nodes.forEach((node, index) => drawnNodes.add(node, 10 * index, 5));
  return { drawnNodes, nodes };
}

test("nearest returns the nearest node and the distance to its edge", () => {
  const { drawnNodes } = three();
  const { hit, away } = drawnNodes.nearest(12, 5);
  equal([hit.node.id, hit.x, hit.y, hit.r, hit.tree.id, away], [2, 10, 5, 4, 7, -2]);
  equal(new DrawnNodes({}, 0, 4).nearest(0, 0), null);
});

test("of returns the position of a node, which moves with the others", () => {
  const { drawnNodes, nodes } = three();
  drawnNodes.move(1, -2);
  equal([drawnNodes.of(nodes[2]).x, drawnNodes.of(nodes[2]).y], [21, 3]);
  equal(drawnNodes.of({ id: 1 }), null);
});
