/**
 * Sampling of nodes where many share a spot: one node of each cell is drawn, chosen at random. Pure.
 *
 * Invariants: each node of a cell is equally likely to be chosen, so over many cells the colours
 * have the shares that the nodes have. The random number is a hash of tree and node: a picture that is
 * drawn again is the same, and a new node changes its own cell at most.
 */

export const CELL = 3; // px of a speck, across and down
const SIDE = 1 << 15; // cells across, at most

/** @param spots {x, y, nodes, length}; `isLit(node)`: whether it takes precedence over unlit nodes.
 *   @returns {lit, dimmed}, each Map(cell -> index of the chosen node); no cell is in both. */
export function pick(spots, seed, isLit) {
  const [lit, dimmed] = [new Map(), new Map()];
  const lots = new Uint32Array(spots.length);
  for (let index = 0; index < spots.length; index += 1) {
    const node = spots.nodes[index];
    lots[index] = lot(seed, node.id);
    const cell = Math.floor(spots.y[index] / CELL) * SIDE + Math.floor(spots.x[index] / CELL);
    const layer = isLit(node) ? lit : dimmed;
    const before = layer.get(cell);
    if (before === undefined || lots[index] < lots[before]) layer.set(cell, index);
  }
  for (const cell of lit.keys()) dimmed.delete(cell);
  return { lit, dimmed };
}

/** Returns a pseudo-random number from 0 to 2**32 - 1 (the finalizer of MurmurHash3). */
function lot(seed, id) {
  let value = Math.imul(seed, 0x9e3779b1) ^ id;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
