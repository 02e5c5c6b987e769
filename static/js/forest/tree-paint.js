/** Painting of one tree: its lines, and its nodes as marks, or as dots where it is dense. */

import { drawMark } from "./marks.js";
import { CELL, sampleNodes } from "./sampling.js";
import { DrawnNodes } from "./hit-test.js";

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const DENSE_BELOW = 5; // px from one node to the next
const DIMMED = 0.16; // opacity of nodes that a filter excludes

/**
 * Paints a tree and returns its `Spots`.
 *
 * @param toPixels maps units of the layout to pixels; `least` and `most` bound a node's radius.
 * @param picture {palette, lookOf(node), pulse, matched, folded, clip}
 */
export function paintTree(context, tree, shape, toPixels, picture, least, most) {
  const r = Math.max(least, Math.min(most, toPixels.scale * 0.3));
  const drawnNodes = drawnNodesOf(tree, shape, toPixels, r, picture.clip);
  const root = toPixels(shape.positions.get(0));
  const rootSize = Math.max(2.5, Math.min(12, r * 0.8));
  // Where nodes would touch, detail is noise and costs seconds: lines in bulk, nodes as dots.
  if (toPixels.scale < DENSE_BELOW) {
    bulkEdges(context, tree, shape, toPixels, picture);
    rootMark(context, root, rootSize, picture.palette);
    bulkDots(context, tree, drawnNodes, picture);
    return drawnNodes;
  }
  for (const [from, to, refines] of edgesOf(tree, shape, toPixels, picture.clip)) {
    edge(context, from, to, r, refines, picture.palette);
  }
  rootMark(context, root, rootSize, picture.palette);
  for (let index = 0; index < drawnNodes.length; index += 1) {
    const { node, x, y } = drawnNodes.at(index);
    context.globalAlpha = picture.matched && !picture.matched.has(node.id) ? DIMMED : 1;
    drawMark(context, x, y, r, { ...picture.lookOf(node), pulse: picture.pulse }, picture.palette);
    const folded = picture.folded?.get(node.id);
    if (folded) foldedBadge(context, x, y, r, folded, picture.palette);
    context.globalAlpha = 1;
  }
  return drawnNodes;
}

/** Returns the nodes with a position, for hit tests; of a zoomed tree only those in view. */
function drawnNodesOf(tree, shape, { line: [left, across, top, down] }, r, clip) {
  const drawnNodes = new DrawnNodes(tree, tree.nodes.size, r);
  for (const node of tree.nodes.values()) {
    const unit = shape.positions.get(node.id);
    if (!unit) continue;
    const [x, y] = [left + unit.x * across, top + unit.y * down];
    if (clip && (x < clip.x - r || x > clip.x + clip.width + r)) continue;
    if (clip && (y < clip.y - r || y > clip.y + clip.height + r)) continue;
    drawnNodes.add(node, x, y);
  }
  return drawnNodes;
}

/** Yields [from, to, whether it refines] of every line that may be in view. */
function* edgesOf(tree, shape, toPixels, clip) {
  for (const node of tree.nodes.values()) {
    const unit = shape.positions.get(node.id);
    if (!unit) continue;
    const refines = node.parent !== 0 && shape.positions.has(node.parent);
    const from = toPixels(shape.positions.get(refines ? node.parent : 0));
    const to = toPixels(unit);
    if (clip && (Math.max(from.x, to.x) < clip.x || Math.min(from.x, to.x) > clip.x + clip.width)) continue;
    if (clip && (to.y < clip.y || from.y > clip.y + clip.height)) continue;
    yield [from, to, refines];
  }
}

function foldedBadge(context, x, y, r, count, palette) {
  context.font = `600 10.5px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = palette.muted;
  context.fillText(`+${count}`, x, y + r * 1.9 + 6);
}

/** Returns one number per pixel position: thousands of nodes share a few hundred of them. */
function pixel(x, y) {
  return (Math.round(x) & 8191) * 8192 + (Math.round(y) & 8191);
}

/** Draws all lines of a tree as two paths, one line between each pair of pixels. */
function bulkEdges(context, tree, shape, toPixels, { clip, palette }) {
  const paths = { refine: new Path2D(), generate: new Path2D() };
  const taken = new Set();
  for (const [from, to, refines] of edgesOf(tree, shape, toPixels, clip)) {
    const key = pixel(to.x, to.y) * 8192 + (Math.round(from.x) & 8191);
    if (taken.has(key)) continue;
    taken.add(key);
    const path = refines ? paths.refine : paths.generate;
    path.moveTo(from.x, from.y);
    path.lineTo(to.x, to.y);
  }
  context.lineWidth = 0.6;
  for (const [kind, path] of Object.entries(paths)) {
    context.strokeStyle = palette[kind];
    context.stroke(path);
  }
}

/** Draws nodes as dots, one per cell, colour by colour; those that a filter excludes are dim. */
function bulkDots(context, tree, drawnNodes, { lookOf, palette, matched }) {
  const { lit, dimmed } = sampleNodes(drawnNodes, tree.id, (node) => !matched || matched.has(node.id));
  for (const [layer, alpha] of [[dimmed, DIMMED], [lit, 1]]) {
    const colours = new Map();
    for (const index of layer.values()) {
      const look = lookOf(drawnNodes.nodes[index]);
      const colour = look.fill ?? (look.outcome === "open" ? look.hue : palette[look.outcome]);
      if (!colours.has(colour)) colours.set(colour, []);
      colours.get(colour).push(index);
    }
    context.globalAlpha = alpha;
    for (const [colour, indices] of colours) {
      context.fillStyle = colour;
      for (const index of indices) {
        const [x, y] = [drawnNodes.x[index], drawnNodes.y[index]].map((at) => Math.floor(at / CELL) * CELL);
        context.fillRect(x, y, CELL, CELL);
      }
    }
  }
  context.globalAlpha = 1;
}

/** Draws an edge: generation from the problem is a thin dashed line, refinement a solid arrow. */
function edge(context, from, to, r, refines, palette) {
  context.beginPath();
  context.moveTo(from.x, from.y);
  const middle = (from.y + to.y) / 2;
  if (!refines) {
    context.bezierCurveTo(from.x, middle, to.x, middle, to.x, to.y);
    context.setLineDash(r > 3 ? [3, 3] : []);
    context.lineWidth = 1.1;
    context.strokeStyle = palette.generate;
    context.stroke();
    context.setLineDash([]);
    return;
  }
  context.bezierCurveTo(from.x, middle, to.x, middle, to.x, to.y - r);
  context.lineWidth = Math.max(0.8, Math.min(2.2, r * 0.3));
  context.strokeStyle = palette.refine;
  context.stroke();
  if (r < 3) return;
  const tip = to.y - r - 1.5;
  const size = Math.max(3, r * 0.55);
  context.beginPath();
  context.moveTo(to.x, tip);
  context.lineTo(to.x - size * 0.7, tip - size);
  context.lineTo(to.x + size * 0.7, tip - size);
  context.closePath();
  context.fillStyle = palette.refine;
  context.fill();
}

function rootMark(context, { x, y }, r, palette) {
  context.beginPath();
  context.roundRect(x - r * 1.5, y - r * 0.8, r * 3, r * 1.6, r * 0.6);
  context.fillStyle = palette.muted;
  context.fill();
}

/** Draws a ring around the open node. */
export function ring(context, x, y, r, palette) {
  context.beginPath();
  context.arc(x, y, r * 1.75 + 1, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = palette.text;
  context.stroke();
}

/** Returns a short line as in the trees, for the legend. */
export function edgeIcon(refines, palette) {
  const canvas = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  canvas.width = 26 * ratio;
  canvas.height = 12 * ratio;
  canvas.className = "edge";
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.translate(0, 6);
  context.rotate(-Math.PI / 2);
  edge(context, { x: 0, y: 1 }, { x: 0, y: 26 }, refines ? 4.5 : 4, refines, palette);
  return canvas;
}
