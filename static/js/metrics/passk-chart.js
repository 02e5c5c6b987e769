/** Pass@k over the budget k: a line per run, its 95 % interval as a band. In pixels; log2 axis. */

import { svg } from "../lib/dom.js";
import { percent } from "../lib/format.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 220, 44, 16, 10, 24];
const LOOKS = 8; // of runs, by colour and dash; charts.css has the same number

/** Returns the functions x(k) and y(share) in pixels, for budgets from 1 to `most`. */
export function scales(most) {
  const doublings = Math.log2(Math.max(2, most));
  return {
    x: (k) => LEFT + ((WIDTH - LEFT - RIGHT) * Math.log2(k)) / doublings,
    y: (share) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share),
  };
}

/** Returns the SVG paths of a line and of the band around it, of rows {k, within, low, high}. */
export function paths(rows, { x, y }) {
  const points = (name) => rows.map((row) => `${x(row.k).toFixed(1)},${y(row[name]).toFixed(1)}`);
  const [line, low, high] = ["within", "low", "high"].map(points);
  return { line: `M${line.join("L")}`, band: `M${[...low, ...high.reverse()].join("L")}Z` };
}

/** @param series [{label, rows}] with at least one row each. */
export function passkChart(series) {
  const budgets = [...new Set(series.flatMap(({ rows }) => rows.map(({ k }) => k)))].sort((a, b) => a - b);
  const scale = scales(budgets.at(-1));
  const text = (at, up, anchor, words) => svg("text", { x: at, y: up, "text-anchor": anchor }, words);
  const shares = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: scale.y(share), y2: scale.y(share), class: "grid" }),
    text(LEFT - 6, scale.y(share) + 4, "end", percent(share, 0)),
  ]);
  const ticks = budgets.map((k) => text(scale.x(k), HEIGHT - 6, "middle", String(k)));
  const bands = series.map(({ rows }, index) => svg("path", { class: `band of-${index % LOOKS}`, d: paths(rows, scale).band }));
  const lines = series.map(({ rows }, index) => svg("path", { class: `line of-${index % LOOKS}`, d: paths(rows, scale).line }));
  const dots = series.flatMap(({ label, rows }, index) =>
    rows.map((row) => {
      const title = svg("title", {}, [label, `k = ${row.k}: ${describeRow(row)}`].filter(Boolean).join(", "));
      return svg("circle", { class: `dot of-${index % LOOKS}`, cx: scale.x(row.k), cy: scale.y(row.within), r: 3.5 }, title);
    }),
  );
  const descriptions = series.map(({ label, rows }) => [label, `${describeRow(rows.at(-1))} within ${rows.at(-1).k} nodes`].filter(Boolean).join(": "));
  const about = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "passk", role: "img", "aria-label": `Pass@k over the budget k. ${descriptions.join("; ")}` };
  return svg("svg", about, ...shares.flat(), ...ticks, ...bands, ...lines, ...dots);
}

function describeRow({ within, low, high }) {
  return `${percent(within, 1)}, interval ${percent(low, 0)} to ${percent(high, 0)}`;
}
