/**
 * Tidy layout of one tree (Reingold–Tilford in Buchheim's linear form, by d3-hierarchy). Pure.
 *
 * Units: one node apart is 1 across, one level is 1 down; the root (node 0) is at depth 0.
 */

import { hierarchy, tree as tidy } from "../../vendor/d3-hierarchy/d3-hierarchy.min.js";

/**
 * Computes the positions of a tree's nodes.
 *
 * @param nodes iterable of {id, parent}, parents first; the root is not among them.
 * @param collapsed ids of nodes whose descendants get no position.
 * @returns {positions: Map(id -> {x, y}), width, height}; x runs from 0 to width, y is the depth.
 */
export function layout(nodes, collapsed = new Set()) {
  const top = { id: 0, below: [] };
  const rows = new Map([[0, top]]);
  const hidden = new Set();
  for (const node of nodes) {
    if (rows.has(node.id)) continue; // each has one position, and 0 is the root's
    if (hidden.has(node.parent) || collapsed.has(node.parent)) {
      hidden.add(node.id);
      continue;
    }
    const row = { id: node.id, below: [] };
    // A node whose parent is unknown, or is the node itself, becomes a child of the root.
    (rows.get(node.parent) ?? top).below.push(row);
    rows.set(node.id, row);
  }
  const root = hierarchy(top, (row) => row.below);
  tidy()
    .nodeSize([1, 1])
    .separation((a, b) => (a.parent === b.parent ? 1 : 1.25))(root);
  return shifted(root);
}

function shifted(root) {
  let left = Infinity;
  let right = -Infinity;
  let height = 0;
  root.each((node) => {
    left = Math.min(left, node.x);
    right = Math.max(right, node.x);
    height = Math.max(height, node.depth);
  });
  const positions = new Map();
  root.each((node) => positions.set(node.data.id, { x: node.x - left, y: node.depth }));
  return { positions, width: right - left, height };
}

/**
 * Returns a function from {x, y} of the layout to pixels, with `scale` = pixels of one unit across
 * and `line` = [x of 0, x per unit, y of 0, y per unit], for callers that position thousands of nodes.
 */
export function pixelMapping(line, scale) {
  const [left, across, top, down] = line;
  const toPixels = ({ x, y }) => ({ x: left + x * across, y: top + y * down });
  return Object.assign(toPixels, { line, scale });
}

/**
 * Maps unit positions into a box, with at most `most` pixels between adjacent nodes.
 *
 * @returns as `pixelMapping`.
 */
export function fit({ width, height }, box, most = 64) {
  const across = width ? Math.min(box.width / width, most) : most;
  const down = height ? Math.min(box.height / height, most * 1.15) : most;
  const left = box.x + (box.width - across * width) / 2;
  const top = box.y + Math.max(0, (box.height - down * height) / 2) * 0.35;
  return pixelMapping([left, across, top, down], Math.min(across, down));
}

/**
 * Computes rows and columns of small multiples.
 *
 * @returns {columns, rows, width, height, gap, tiles: [{x, y, width, height}]}
 */
export function grid(count, width, { least = 128, most = 220, ratio = 0.92, gap = 8 } = {}) {
  const fitting = Math.max(1, Math.min(count || 1, Math.floor((width + gap) / (least + gap))));
  const columns = evenColumns(count, fitting);
  const tile = Math.min(most, (width - gap * (columns - 1)) / columns);
  const tall = Math.round(tile * ratio);
  const rows = Math.ceil(count / columns);
  const tiles = Array.from({ length: count }, (_, index) => ({
    x: (index % columns) * (tile + gap),
    y: Math.floor(index / columns) * (tall + gap),
    width: tile,
    height: tall,
  }));
  return { columns, rows, gap, tiles, width, height: Math.max(0, rows * (tall + gap) - gap) };
}

/** Returns the number of columns, at least 3/4 of what fits, with the fewest holes in the last row. */
function evenColumns(count, fitting) {
  let best = fitting;
  for (let columns = fitting; columns >= Math.max(1, fitting * 0.75); columns -= 1) {
    const holes = (columns - (count % columns)) % columns;
    if (holes < (best - (count % best)) % best) best = columns;
  }
  return best;
}

/** Returns the id of the node that an arrow key leads to: parent, first child, adjacent sibling. */
export function neighbour(nodes, id, key) {
  const all = [...nodes.values()];
  const current = nodes.get(id);
  if (!current) return all[0]?.id ?? null;
  if (key === "ArrowUp") return current.parent === 0 ? id : current.parent;
  if (key === "ArrowDown") return all.find((node) => node.parent === id)?.id ?? id;
  const level = all.filter((node) => node.parent === current.parent).map((node) => node.id);
  const index = level.indexOf(id) + (key === "ArrowRight" ? 1 : -1);
  return level[index] ?? id;
}
