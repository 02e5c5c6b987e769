/** Draws trees on a canvas. Given the same trees, places and palette it draws the same picture. */

import { outcome } from "./fold.js";
import { fit } from "./layout.js";
import { drawMark } from "./marks.js";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const DENSE_BELOW = 5; // px from one node to the next
const HEAD = 22; // px kept for a tile's heading
const DOTS_FROM = 34; // px from a tile's edge: behind a number of two digits
const STATUS_WIDTH = 54; // of "solved" or "unsolved", with its margins

/**
 * Draws one small multiple and returns the spots that can be pointed at.
 *
 * @param picture {palette, lookOf(node), selected, pulse}
 */
export function paintTile(context, box, tree, shape, picture) {
  const { palette } = picture;
  context.beginPath();
  context.roundRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 8);
  context.fillStyle = palette.raised;
  context.fill();
  context.lineWidth = picture.over ? 1.5 : 1;
  context.strokeStyle = picture.over ? palette.accent : palette.line;
  context.stroke();
  heading(context, box, tree, picture);
  const inner = {
    x: box.x + 14,
    y: box.y + HEAD + 10,
    width: box.width - 28,
    height: box.height - HEAD - 24,
  };
  return paintTree(context, tree, shape, fit(shape, inner, 30), picture, 3.2, 7.5);
}

function heading(context, box, tree, { palette, number }) {
  context.font = `600 11px ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = palette.muted;
  context.textAlign = "left";
  context.fillText(String(number), box.x + 10, box.y + 13);
  // A dot per step of the problem, where all have room between the number and the badge.
  const room = Math.floor((box.width - DOTS_FROM - STATUS_WIDTH) / 5.5);
  const dots = tree.difficulty <= room ? tree.difficulty : 0;
  for (let step = 0; step < dots; step += 1) {
    context.beginPath();
    context.arc(box.x + DOTS_FROM + step * 5.5, box.y + 13, 1.8, 0, 2 * Math.PI);
    context.fillStyle = palette.faint;
    context.fill();
  }
  if (tree.solved) solvedBadge(context, box.x + box.width - 8, box.y + 13, palette);
  else if (tree.closed) {
    context.textAlign = "right";
    context.font = `500 10.5px ${FONT}`;
    context.fillStyle = palette.faint;
    context.fillText("unsolved", box.x + box.width - 9, box.y + 13);
  }
}

function solvedBadge(context, right, y, palette) {
  context.font = `600 10.5px ${FONT}`;
  const wide = context.measureText("solved").width + 12;
  context.beginPath();
  context.roundRect(right - wide, y - 8, wide, 16, 8);
  context.fillStyle = palette.passed;
  context.fill();
  context.fillStyle = palette.passedInk;
  context.textAlign = "center";
  context.fillText("solved", right - wide / 2, y + 0.5);
}

/** One tree in the whole stage, with depth lines and the advantage beside each credited node. */
export function paintFocus(context, box, tree, shape, picture) {
  const { palette } = picture;
  const inner = { x: box.x + 64, y: box.y + 30, width: box.width - 96, height: box.height - 72 };
  const place = fit(shape, inner, 96);
  context.font = `500 11px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (let depth = 0; depth <= shape.height; depth += 1) {
    const { y } = place({ x: 0, y: depth });
    context.fillStyle = palette.faint;
    if (place.scale > 14) context.fillText(depth ? `depth ${depth}` : "problem", box.x + 2, y);
    context.fillStyle = palette.grid;
    context.fillRect(box.x + 54, y, box.width - 54, 1);
  }
  const spots = paintTree(context, tree, shape, place, picture, 1.6, 15);
  if (place.scale > 44) for (const spot of spots) advantageLabel(context, spot, palette);
  return spots;
}

function advantageLabel(context, { x, y, r, node }, palette) {
  if (node.advantage === null) return;
  const size = Math.abs(node.advantage).toFixed(2);
  const text = node.advantage ? `${node.advantage < 0 ? "\u2212" : "+"}${size}` : "0";
  context.font = `600 11px ${FONT}`;
  context.textAlign = "left";
  const left = x + r * 1.75 + 4;
  context.fillStyle = palette.surface;
  context.fillRect(left - 2, y - 7, context.measureText(text).width + 4, 14);
  context.fillStyle = node.advantage < 0 ? palette.failedInk : palette.accent;
  if (!node.advantage) context.fillStyle = palette.faint;
  context.fillText(text, left, y + 0.5);
}

function paintTree(context, tree, shape, place, picture, least, most) {
  const r = Math.max(least, Math.min(most, place.scale * 0.3));
  const at = (id) => place(shape.places.get(id));
  const root = at(0);
  // Where nodes would touch, detail is noise and costs seconds: lines in bulk, nodes as specks.
  const dense = place.scale < DENSE_BELOW;
  if (dense) bulkEdges(context, tree, shape, at, picture.palette);
  else {
    for (const node of tree.nodes.values()) {
      const parent = shape.places.has(node.parent) ? node.parent : 0;
      edge(context, at(parent), at(node.id), r, parent !== 0, picture.palette);
    }
  }
  rootMark(context, root, Math.max(2.5, r * 0.8), picture.palette);
  const spots = [];
  for (const node of tree.nodes.values()) {
    const { x, y } = at(node.id);
    const look = picture.lookOf(node);
    if (dense) speck(context, x, y, look, picture.palette);
    else drawMark(context, x, y, r, { ...look, pulse: picture.pulse }, picture.palette);
    if (picture.selected === node) ring(context, x, y, r, picture.palette);
    spots.push({ tree, node, x, y, r });
  }
  return spots;
}

function bulkEdges(context, tree, shape, at, palette) {
  const made = { refine: new Path2D(), generate: new Path2D() };
  for (const node of tree.nodes.values()) {
    const refines = node.parent !== 0 && shape.places.has(node.parent);
    const from = at(refines ? node.parent : 0);
    const to = at(node.id);
    const path = refines ? made.refine : made.generate;
    path.moveTo(from.x, from.y);
    path.lineTo(to.x, to.y);
  }
  context.lineWidth = 0.6;
  for (const [kind, path] of Object.entries(made)) {
    context.strokeStyle = palette[kind];
    context.stroke(path);
  }
}

/** Generation leaves the problem as a thin dashed line; refinement is a solid arrow. */
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

function speck(context, x, y, look, palette) {
  context.fillStyle = look.outcome === "open" ? look.hue : palette[look.outcome];
  context.fillRect(x - 1.5, y - 1.5, 3, 3);
}

function ring(context, x, y, r, palette) {
  context.beginPath();
  context.arc(x, y, r * 1.75 + 1, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = palette.text;
  context.stroke();
}

/** How a node looks, for the agents of a team in their order. */
export function lookup(agents, palette) {
  const shapes = new Map(agents.map((agent) => [agent.name, agent]));
  return (node) => {
    const agent = shapes.get(node.agent) ?? agents[0];
    return {
      shape: agent?.shape ?? "circle",
      hue: palette.agents[agent?.position ?? 0],
      outcome: outcome(node),
      fraction: node.fraction ?? 0,
    };
  };
}

/** A short line as in the trees, for the legend. */
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
