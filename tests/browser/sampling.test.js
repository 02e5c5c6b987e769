import { pick } from "/static/js/forest/sampling.js";
import { equal, ok, test } from "./check.js";

const all = () => true;
/** `count` nodes over a stretch of `wide` pixels; the first `share` of them failed. */
function crowd(count, wide, share) {
  const nodes = Array.from({ length: count }, (_, id) => ({ id: id + 1, failed: id < count * share }));
  const at = (place) => ((place * 7919) % count) * (wide / count);
  return { nodes, x: nodes.map((_, place) => at(place)), y: nodes.map(() => 40), length: count };
}
const failedShare = (spots, layer) => [...layer.values()].filter((index) => spots.nodes[index].failed).length / layer.size;

test("where many lie on one spot the picture keeps their shares", () => {
  for (const share of [0.1, 0.5, 0.9]) {
    const spots = crowd(20_000, 1800, share);
    const { lit } = pick(spots, 7, all);
    equal(lit.size, 600);
    const told = failedShare(spots, lit);
    ok(Math.abs(told - share) < 0.06, `${share} became ${told}`);
  }
});

test("the same nodes give the same picture, and one that comes changes its own cell at most", () => {
  const spots = crowd(1000, 300, 0.5);
  const before = pick(spots, 3, all).lit;
  equal(pick(spots, 3, all).lit, before);
  const more = { nodes: [...spots.nodes, { id: 2000 }], x: [...spots.x, 10], y: [...spots.y, 40], length: 1001 };
  const changed = [...pick(more, 3, all).lit].filter(([cell, index]) => before.get(cell) !== index);
  ok(changed.length <= 1, `${changed.length} changed`);
});

test("what was asked for stands before what was not", () => {
  const spots = crowd(900, 30, 0.9);
  const { lit, dimmed } = pick(spots, 1, (node) => !node.failed);
  ok([...lit.values()].every((index) => !spots.nodes[index].failed));
  equal([...dimmed.keys()].filter((cell) => lit.has(cell)), []);
});
