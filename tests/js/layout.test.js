import { fit, grid, layout, neighbour } from "/static/js/forest/layout.js";
import { equal, ok, test } from "./check.js";

const chain = (count) => Array.from({ length: count }, (_, id) => ({ id: id + 1, parent: id }));

test("the root alone lies at the origin", () => {
  const { positions, width, height } = layout([]);
  equal([width, height], [0, 0]);
  equal(positions.get(0), { x: 0, y: 0 });
});

test("children lie a level below their parent, which lies above their middle", () => {
  const { positions, width, height } = layout([
    { id: 1, parent: 0 },
    { id: 2, parent: 0 },
    { id: 3, parent: 2 },
  ]);
  equal([width, height], [1, 2]);
  equal(positions.get(0), { x: 0.5, y: 0 });
  equal([positions.get(1).x, positions.get(2).x], [0, 1]);
  equal(positions.get(3), { x: 1, y: 2 });
});

test("no two nodes of a level come closer than one unit", () => {
  const nodes = Array.from({ length: 400 }, (_, id) => ({ id: id + 1, parent: (id * 7) % (id + 1) }));
  const levels = new Map();
  for (const { x, y } of layout(nodes).positions.values()) {
    levels.set(y, [...(levels.get(y) ?? []), x]);
  }
  for (const xs of levels.values()) {
    xs.sort((a, b) => a - b);
    xs.slice(1).forEach((x, index) => ok(x - xs[index] > 0.999, `${xs[index]} and ${x}`));
  }
});

test("5,000 nodes, wide or deep, are laid out quickly", () => {
  for (const nodes of [chain(5000), Array.from({ length: 5000 }, (_, i) => ({ id: i + 1, parent: i >> 2 }))]) {
    const began = performance.now();
    equal(layout(nodes).positions.size, 5001);
    ok(performance.now() - began < 1500, `${performance.now() - began} ms`);
  }
});

test("everything that fit positions lies in the box", () => {
  const shape = layout(Array.from({ length: 60 }, (_, i) => ({ id: i + 1, parent: i >> 1 })));
  const box = { x: 10, y: 20, width: 100, height: 80 };
  const toPixels = fit(shape, box);
  for (const unit of shape.positions.values()) {
    const { x, y } = toPixels(unit);
    ok(x >= 9.99 && x <= 110.01 && y >= 19.99 && y <= 100.01, `${x} ${y}`);
  }
});

test("small multiples fill the width without overlap, and prefer even rows", () => {
  const { tiles, columns, height } = grid(32, 1364);
  equal(columns, 8);
  equal(tiles.length, 32);
  ok(tiles.every((tile) => tile.x + tile.width <= 1364.01 && tile.y + tile.height <= height + 0.01));
  ok(tiles[1].x >= tiles[0].x + tiles[0].width);
  equal(grid(0, 500).tiles, []);
});

test("arrow keys lead to parent, child and siblings", () => {
  const nodes = new Map([[1, { id: 1, parent: 0 }], [2, { id: 2, parent: 0 }], [3, { id: 3, parent: 2 }]]);
  equal(neighbour(nodes, null, "ArrowDown"), 1);
  equal(neighbour(nodes, 1, "ArrowRight"), 2);
  equal(neighbour(nodes, 2, "ArrowRight"), 2);
  equal(neighbour(nodes, 2, "ArrowDown"), 3);
  equal(neighbour(nodes, 3, "ArrowUp"), 2);
  equal(neighbour(nodes, 1, "ArrowUp"), 1);
});

test("descendants of a collapsed node have no position", () => {
  const nodes = [[1, 0], [2, 0], [3, 1], [4, 3], [5, 2]].map(([id, parent]) => ({ id, parent }));
  equal([...layout(nodes, new Set([1])).positions.keys()].sort(), [0, 1, 2, 5]);
  equal(layout(nodes, new Set([1, 2])).height, 1);
});

test("nodes that are their own parents, or each other's, have their positions", () => {
  const nodes = [{ id: 1, parent: 1 }, { id: 2, parent: 3 }, { id: 3, parent: 2 }, { id: 3, parent: 3 }, { id: 0, parent: 0 }];
  const { positions, height } = layout(nodes);
  equal([...positions.keys()].sort(), [0, 1, 2, 3]);
  equal(height, 2);
});
