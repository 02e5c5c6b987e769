import { Spots } from "/static/js/forest/hit-test.js";
import { equal, test } from "./check.js";

function three() {
  const spots = new Spots({ id: 7 }, 5, 4);
  const nodes = [1, 2, 3].map((id) => ({ id }));
  nodes.forEach((node, place) => spots.add(node, 10 * place, 5));
  return { spots, nodes };
}

test("the nearest spot is found, and how far its edge is", () => {
  const { spots } = three();
  const { spot, away } = spots.nearest(12, 5);
  equal([spot.node.id, spot.x, spot.y, spot.r, spot.tree.id, away], [2, 10, 5, 4, 7, -2]);
  equal(new Spots({}, 0, 4).nearest(0, 0), null);
});

test("a node is found by itself, and moves with the others", () => {
  const { spots, nodes } = three();
  spots.move(1, -2);
  equal([spots.of(nodes[2]).x, spots.of(nodes[2]).y], [21, 3]);
  equal(spots.of({ id: 1 }), null);
});
