/** Painting of trees on a canvas. The same trees, positions and palette give the same picture. */

import { HOME, through } from "./camera.js";
import { fit } from "./layout.js";
import { FONT, paintTree } from "./tree-paint.js";

const HEAD = 22; // px reserved for a tile's heading
const DOTS_FROM = 34; // px from a tile's edge: behind a number of two digits
const STATUS_WIDTH = 54; // px of "solved" or "unsolved", with its margins

/** Paints the frame and heading of one small multiple. @param picture {palette, over, number} */
export function paintTile(context, box, tree, picture) {
  const { palette } = picture;
  context.beginPath();
  context.roundRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 8);
  context.fillStyle = palette.raised;
  context.fill();
  context.lineWidth = picture.over ? 1.5 : 1;
  context.strokeStyle = picture.over ? palette.accent : palette.line;
  context.stroke();
  heading(context, box, tree, picture);
}

/**
 * Paints the tree of one small multiple and returns its `DrawnNodes`.
 *
 * @param picture {palette, lookOf(node), pulse, matched}
 */
export function paintSmall(context, box, tree, shape, picture) {
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
  // A dot per step of the problem, if all fit between the number and the badge.
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

/** Paints one tree in the whole stage, with depth lines and the advantage next to credited nodes. */
export function paintFocus(context, box, tree, shape, picture) {
  const { palette } = picture;
  const toPixels = through(focusFit(box, shape), picture.camera ?? HOME);
  context.save();
  context.beginPath();
  context.rect(box.x, box.y, box.width, box.height);
  context.clip();
  context.font = `500 11px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (let depth = 0; depth <= shape.height; depth += 1) {
    const { y } = toPixels({ x: 0, y: depth });
    context.fillStyle = palette.faint;
    if (y > box.y && y < box.y + box.height) context.fillText(depth ? `depth ${depth}` : "problem", box.x + 2, y);
    context.fillStyle = palette.grid;
    context.fillRect(box.x + 54, y, box.width - 54, 1);
  }
  const drawnNodes = paintTree(context, tree, shape, toPixels, { ...picture, clip: box }, 1.6, 15);
  for (let index = 0; toPixels.scale > 62 && index < drawnNodes.length; index += 1) {
    advantageLabel(context, drawnNodes.at(index), palette);
  }
  context.restore();
  return drawnNodes;
}

/** Returns the pixel mapping of the tree in focus within its box, before the camera is applied. */
export function focusFit(box, shape) {
  const labelRoom = box.width > 480 ? 76 : 32; // the last node's advantage is to its right
  const inner = { x: box.x + 64, y: box.y + 30, width: box.width - 64 - labelRoom, height: box.height - 72 };
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
