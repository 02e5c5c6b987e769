import { sampleNodes } from "/static/js/forest/sampling.js";
import { equal, ok, test } from "./check.js";

const all = () => true;
/** `count` nodes over a stretch of `wide` pixels; the first `share` of them failed. */
function crowd(count, wide, share) {
  const nodes = Array.from({ length: count }, (_, id) => ({ id: id + 1, failed: id < count * share }));
  const at = (index) => ((index * 7919) % count) * (wide / count);
  return { nodes, x: nodes.map((_, index) => at(index)), y: nodes.map(() => 40), length: count };
}
const failedShare = (drawnNodes, layer) => [...layer.values()].filter((index) => drawnNodes.nodes[index].failed).length / layer.size;

test("where many nodes share a position the picture keeps their shares", () => {
  for (const share of [0.1, 0.5, 0.9]) {
    const drawnNodes = crowd(20_000, 1800, share);
    const { lit } = sampleNodes(drawnNodes, 7, all);
    equal(lit.size, 600);
    const drawnShare = failedShare(drawnNodes, lit);
    ok(Math.abs(drawnShare - share) < 0.06, `${share} became ${drawnShare}`);
  }
});

test("the same nodes give the same picture, and a new one changes only its own cell", () => {
  const drawnNodes = crowd(1000, 300, 0.5);
  const before = sampleNodes(drawnNodes, 3, all).lit;
  equal(sampleNodes(drawnNodes, 3, all).lit, before);
  const more = { nodes: [...drawnNodes.nodes, { id: 2000 }], x: [...drawnNodes.x, 10], y: [...drawnNodes.y, 40], length: 1001 };
  const changed = [...sampleNodes(more, 3, all).lit].filter(([cell, index]) => before.get(cell) !== index);
  ok(changed.length <= 1, `${changed.length} changed`);
});

test("lit nodes take precedence over dimmed ones", () => {
  const drawnNodes = crowd(900, 30, 0.9);
  const { lit, dimmed } = sampleNodes(drawnNodes, 1, (node) => !node.failed);
  ok([...lit.values()].every((index) => !drawnNodes.nodes[index].failed));
  equal([...dimmed.keys()].filter((cell) => lit.has(cell)), []);
});
