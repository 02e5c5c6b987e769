/** Draws trees on a canvas. Given the same trees, places and palette it draws the same picture. */

import { outcome } from "./fold.js";
import { fit } from "./layout.js";
import { HOME, through } from "./camera.js";
import { drawMark, mixed } from "./marks.js";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const DENSE_BELOW = 5; // px from one node to the next
const DIMMED = 0.16; // of nodes that a filter leaves out
const STRONG = 2; // an advantage from which on the overlay is at its full colour
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
  const place = through(focusFit(box, shape), picture.camera ?? HOME);
  context.save();
  context.beginPath();
  context.rect(box.x, box.y, box.width, box.height);
  context.clip();
  context.font = `500 11px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (let depth = 0; depth <= shape.height; depth += 1) {
    const { y } = place({ x: 0, y: depth });
    context.fillStyle = palette.faint;
    if (y > box.y && y < box.y + box.height) context.fillText(depth ? `depth ${depth}` : "problem", box.x + 2, y);
    context.fillStyle = palette.grid;
    context.fillRect(box.x + 54, y, box.width - 54, 1);
  }
  const spots = paintTree(context, tree, shape, place, { ...picture, clip: box }, 1.6, 15);
  if (place.scale > 62) for (const spot of spots) advantageLabel(context, spot, palette);
  context.restore();
  return spots;
}

/** How the tree in focus lies in its box before the camera moves. */
export function focusFit(box, shape) {
  const inner = { x: box.x + 64, y: box.y + 30, width: box.width - 96, height: box.height - 72 };
  return fit(shape, inner, 96);
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
  const spots = placed(tree, shape, place, r, picture.clip);
  // Where nodes would touch, detail is noise and costs seconds: lines in bulk, nodes as specks.
  const dense = place.scale < DENSE_BELOW;
  const edges = edgesOf(tree, shape, place, picture.clip);
  if (dense) bulkEdges(context, edges, picture.palette);
  else for (const [from, to, refines] of edges) edge(context, from, to, r, refines, picture.palette);
  rootMark(context, place(shape.places.get(0)), Math.max(2.5, Math.min(12, r * 0.8)), picture.palette);
  for (const { node, x, y } of spots) {
    const look = picture.lookOf(node);
    context.globalAlpha = picture.matched && !picture.matched.has(node.id) ? DIMMED : 1;
    if (dense) speck(context, x, y, look, picture.palette);
    else drawMark(context, x, y, r, { ...look, pulse: picture.pulse }, picture.palette);
    const folded = picture.folded?.get(node.id);
    if (folded && !dense) foldedBadge(context, x, y, r, folded, picture.palette);
    context.globalAlpha = 1;
    if (picture.selected === node) ring(context, x, y, r, picture.palette);
  }
  return spots;
}

/** The nodes that have a place, as spots to point at; of a zoomed tree only what is in view. */
function placed(tree, shape, place, r, clip) {
  const spots = [];
  for (const node of tree.nodes.values()) {
    const unit = shape.places.get(node.id);
    if (!unit) continue;
    const { x, y } = place(unit);
    if (clip && (x < clip.x - r || x > clip.x + clip.width + r)) continue;
    if (clip && (y < clip.y - r || y > clip.y + clip.height + r)) continue;
    spots.push({ tree, node, x, y, r });
  }
  return spots;
}

/** [from, to, whether it refines] of every line that may be in view. */
function edgesOf(tree, shape, place, clip) {
  const edges = [];
  for (const node of tree.nodes.values()) {
    const unit = shape.places.get(node.id);
    if (!unit) continue;
    const refines = node.parent !== 0 && shape.places.has(node.parent);
    const from = place(shape.places.get(refines ? node.parent : 0));
    const to = place(unit);
    if (clip && (Math.max(from.x, to.x) < clip.x || Math.min(from.x, to.x) > clip.x + clip.width)) continue;
    if (clip && (to.y < clip.y || from.y > clip.y + clip.height)) continue;
    edges.push([from, to, refines]);
  }
  return edges;
}

function foldedBadge(context, x, y, r, count, palette) {
  context.font = `600 10.5px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = palette.muted;
  context.fillText(`+${count}`, x, y + r * 1.9 + 6);
}

function bulkEdges(context, edges, palette) {
  const made = { refine: new Path2D(), generate: new Path2D() };
  for (const [from, to, refines] of edges) {
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
  context.fillStyle = look.fill ?? (look.outcome === "open" ? look.hue : palette[look.outcome]);
  context.fillRect(x - 1.5, y - 1.5, 3, 3);
}

function ring(context, x, y, r, palette) {
  context.beginPath();
  context.arc(x, y, r * 1.75 + 1, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = palette.text;
  context.stroke();
}

/**
 * How a node looks, for the agents of a team in their order.
 *
 * @param colour what the fill tells: "score", "advantage" or "agent".
 */
export function lookup(agents, palette, colour = "score") {
  const shapes = new Map(agents.map((agent) => [agent.name, agent]));
  return (node) => {
    const agent = shapes.get(node.agent) ?? agents[0];
    const look = {
      shape: agent?.shape ?? "circle",
      hue: palette.agents[agent?.position ?? 0],
      outcome: outcome(node),
      fraction: node.fraction ?? 0,
    };
    if (colour === "advantage" && node.closed) Object.assign(look, creditFill(node.advantage, palette));
    else if (colour === "agent" && node.closed) Object.assign(look, { fill: look.hue, sign: 0 });
    return look;
  };
}

/** Fill and sign of an advantage; one that is not known yet is as pale as the ground. */
export function creditFill(advantage, palette) {
  if (!advantage) return { fill: advantage === 0 ? palette.line : palette.surface, sign: 0 };
  const share = 0.25 + 0.75 * Math.min(1, Math.abs(advantage) / STRONG);
  const fill = mixed(palette.surface, advantage > 0 ? palette.plus : palette.minus, share);
  return { fill, sign: Math.sign(advantage) };
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
