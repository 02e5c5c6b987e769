/**
 * Sampling of nodes where many share a position: one node of each cell is drawn, chosen at random. Pure.
 *
 * Invariants: each node of a cell is equally likely to be chosen, so over many cells the colours
 * have the shares that the nodes have. The random number is a hash of tree and node: a picture that is
 * drawn again is the same, and a new node changes its own cell at most.
 */

export const CELL = 3; // px of a dot, across and down
const SIDE = 1 << 15; // cells across, at most

/** @param drawnNodes {x, y, nodes, length}; `isLit(node)`: whether it takes precedence over unlit nodes.
 *   @returns {lit, dimmed}, each Map(cell -> index of the chosen node); no cell is in both. */
export function sampleNodes(drawnNodes, seed, isLit) {
  const [lit, dimmed] = [new Map(), new Map()];
  const priorities = new Uint32Array(drawnNodes.length);
  for (let index = 0; index < drawnNodes.length; index += 1) {
    const node = drawnNodes.nodes[index];
    priorities[index] = hash(seed, node.id);
    const cell = Math.floor(drawnNodes.y[index] / CELL) * SIDE + Math.floor(drawnNodes.x[index] / CELL);
    const layer = isLit(node) ? lit : dimmed;
    const chosen = layer.get(cell);
    if (chosen === undefined || priorities[index] < priorities[chosen]) layer.set(cell, index);
  }
  for (const cell of lit.keys()) dimmed.delete(cell);
  return { lit, dimmed };
}

/** Returns a pseudo-random number from 0 to 2**32 - 1 (the finalizer of MurmurHash3). */
function hash(seed, id) {
  let value = Math.imul(seed, 0x9e3779b1) ^ id;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
