/**
 * The look of agents and scores on a canvas: an agent is a mark and a hue, a score is the fill.
 *
 * Neither depends on colour alone: marks differ in shape; passed is a dark fill with a tick,
 * partial is filled from below by its share of tests, failed is pale with a bar, a sandbox
 * failure is crossed out, and an open node is hollow and pulses.
 */

export const SHAPES = ["circle", "square", "triangle", "diamond", "hexagon", "star"];

/** Returns {shape, hue} of the agent at a position in the team; `hue` names a CSS property. */
function markOf(position) {
  return {
    shape: SHAPES[position % SHAPES.length],
    hue: `--agent-${(position % SHAPES.length) + 1}`,
  };
}

/** Returns {name, position, shape, hue, token} of the agents of a team, in its order. */
export function looksOf(names, palette) {
  return names.map((name, position) => {
    const { shape, hue } = markOf(position);
    return { name, position, shape, hue: palette.agents[position % palette.agents.length], token: hue };
  });
}

/** Returns the palette of the page's theme; read once per theme. */
export function readPalette(element = document.documentElement) {
  const style = getComputedStyle(element);
  const get = (name) => style.getPropertyValue(name).trim();
  const names = ["text", "muted", "faint", "surface", "raised", "line", "accent", "grid"];
  const palette = Object.fromEntries(names.map((name) => [name, get(`--${name}`)]));
  for (const outcome of ["passed", "partial", "failed", "failure", "open"]) {
    palette[outcome] = get(`--score-${outcome}`);
    palette[`${outcome}Ink`] = get(`--score-${outcome}-ink`);
  }
  palette.plus = get("--advantage-plus");
  palette.minus = get("--advantage-minus");
  palette.refine = get("--edge-refine");
  palette.generate = get("--edge-generate");
  palette.agents = SHAPES.map((_, index) => get(`--agent-${index + 1}`));
  return palette;
}

/** Traces a mark around (x, y); areas are about equal, so no agent looks bigger. */
export function trace(context, shape, x, y, r) {
  context.beginPath();
  if (shape === "circle") context.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === "square") context.roundRect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8, r / 4);
  else polygon(context, x, y, CORNERS[shape](r));
}

const ring = (sides, turn, radius) =>
  Array.from({ length: sides }, (_, index) => {
    const angle = turn + (2 * Math.PI * index) / sides;
    return [radius(index) * Math.cos(angle), radius(index) * Math.sin(angle)];
  });

const CORNERS = {
  triangle: (r) => ring(3, -Math.PI / 2, () => r * 1.3).map(([x, y]) => [x, y + r * 0.15]),
  diamond: (r) => ring(4, -Math.PI / 2, () => r * 1.25),
  hexagon: (r) => ring(6, 0, () => r * 1.08),
  star: (r) => ring(10, -Math.PI / 2, (index) => (index % 2 ? r * 0.6 : r * 1.35)),
};

function polygon(context, x, y, corners) {
  corners.forEach(([dx, dy], index) => {
    if (index) context.lineTo(x + dx, y + dy);
    else context.moveTo(x + dx, y + dy);
  });
  context.closePath();
}

/**
 * Draws one node.
 *
 * @param look {shape, hue, outcome, fraction, pulse, fill, sign}; pulse runs from 0 to 1 for open
 *   nodes; `fill` and `sign` (1, 0, -1) replace the score's under an overlay.
 */
export function drawMark(context, x, y, r, look, palette) {
  trace(context, look.shape, x, y, r);
  const overlaid = look.fill !== undefined;
  const partial = look.outcome === "partial" && !overlaid;
  context.fillStyle = look.fill ?? (partial ? palette.failed : palette[look.outcome]);
  context.fill();
  if (partial) fillFromBelow(context, x, y, r, look, palette);
  trace(context, look.shape, x, y, r);
  context.lineWidth = Math.max(1.25, r * 0.24);
  context.strokeStyle = look.hue;
  context.stroke();
  if (look.outcome === "open") halo(context, x, y, r, look);
  else if (r >= 4.5 && overlaid) direction(context, x, y, r, look.sign, palette);
  else if (r >= 4.5) sign(context, x, y, r, look.outcome, palette);
}

/** Draws plus, minus or nothing, so that an overlay does not depend on colour alone. */
function direction(context, x, y, r, way, palette) {
  if (!way) return;
  context.beginPath();
  context.moveTo(x - r * 0.42, y);
  context.lineTo(x + r * 0.42, y);
  if (way > 0) {
    context.moveTo(x, y - r * 0.42);
    context.lineTo(x, y + r * 0.42);
  }
  context.lineWidth = Math.max(1.2, r * 0.2);
  context.lineCap = "round";
  context.strokeStyle = palette.text;
  context.stroke();
}

/** Mixes two colours of the form #rrggbb: `share` 0 gives the first, 1 the second. Pure. */
export function mixed(from, to, share) {
  const channelOf = (hex, channel) => parseInt(hex.slice(1 + 2 * channel, 3 + 2 * channel), 16);
  const blend = (channel) => Math.round(channelOf(from, channel) + (channelOf(to, channel) - channelOf(from, channel)) * share);
  return `#${[0, 1, 2].map((channel) => blend(channel).toString(16).padStart(2, "0")).join("")}`;
}

function fillFromBelow(context, x, y, r, look, palette) {
  context.save();
  context.clip();
  context.fillStyle = palette.partial;
  const top = y + r - 2 * r * Math.min(0.8, Math.max(0.35, look.fraction));
  context.fillRect(x - 2 * r, top, 4 * r, 4 * r);
  context.restore();
}

function halo(context, x, y, r, look) {
  context.save();
  context.globalAlpha = 0.55 * (1 - look.pulse);
  trace(context, look.shape, x, y, r * (1.15 + 0.9 * look.pulse));
  context.lineWidth = 1.5;
  context.stroke();
  context.restore();
}

function sign(context, x, y, r, outcome, palette) {
  context.beginPath();
  if (outcome === "passed") {
    context.moveTo(x - r * 0.42, y + r * 0.02);
    context.lineTo(x - r * 0.1, y + r * 0.36);
    context.lineTo(x + r * 0.45, y - r * 0.34);
  } else if (outcome === "failure") {
    context.moveTo(x - r * 0.35, y - r * 0.35);
    context.lineTo(x + r * 0.35, y + r * 0.35);
    context.moveTo(x + r * 0.35, y - r * 0.35);
    context.lineTo(x - r * 0.35, y + r * 0.35);
  } else if (outcome === "failed") {
    context.moveTo(x - r * 0.35, y + r * 0.05);
    context.lineTo(x + r * 0.35, y + r * 0.05);
  } else return;
  context.lineWidth = Math.max(1.2, r * 0.22);
  context.lineCap = "round";
  context.lineJoin = "round";
  context.strokeStyle = palette[`${outcome}Ink`];
  context.stroke();
}

/** Returns a small canvas with one mark, for legends and the node's panel. */
export function markIcon(look, palette, size = 18) {
  const canvas = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  canvas.width = size * ratio;
  canvas.height = size * ratio;
  canvas.className = "mark";
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  drawMark(context, size / 2, size / 2, size * 0.32, { pulse: 0.35, ...look }, palette);
  return canvas;
}
