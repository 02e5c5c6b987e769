/** Curves of several runs, from what the page holds: a guest of a comparison sees nothing beside it. */

import { Comments } from "./comments.js";
import { MetricBoard } from "./metric-board.js";
import { bucketed } from "./metric-buckets.js";
import { readZoom, withZoom } from "./metric-view.js";

const { labels, curves } = JSON.parse(document.getElementById("page").textContent);
const host = document.querySelector('[data-part="charts"]');
const RENEW_MS = 15_000;
const VIEW = { x: "step", smooth: 0, logX: false, logY: false, band: "none" };

if (host) begin();
const comments = document.querySelector("[data-comments]");
if (comments) keepUp(new Comments(comments));

/** A comparison has no stream that would tell of comments. */
function keepUp(thread) {
  setInterval(() => document.hidden || thread.renew(), RENEW_MS);
}

function begin() {
  let zoomed = readZoom(location.search);
  const runs = new Map(labels.map((label) => [label, { id: label, label, name: label, group: label, agents: [] }]));
  const valuesOf = new Map();
  const charts = curves.map(({ id, title, hint, unit, x, lines }) => {
    for (const { name, values } of lines) valuesOf.set(`${id} ${name}`, { x, values });
    const told = lines.map(({ name }) => ({ run: name, metric: `${id} ${name}`, part: "", label: "" }));
    return { id, title, hint, share: unit === "share", lines: told, extent: [0, Math.max(1, ...x)] };
  });
  const board = new MetricBoard({
    runs,
    view: () => ({ ...VIEW, ...zoomed }),
    zoom: (from, to) => {
      zoomed = { from, to };
      history.replaceState(null, "", withZoom(location, from, to));
      board.refresh(undefined, performance.now());
    },
    load: ({ metric }, range) => bucketed(valuesOf.get(metric), range),
    onFault: (error) => console.warn("grove: the curves cannot be drawn:", error.message),
  });
  board.arrange(charts, (root) => host.append(root));
  new ResizeObserver(() => board.resize()).observe(host);
  addEventListener("themechange", () => board.themeChanged());
}

// The address keeps only what was chosen.
document.querySelector(".compare-choice")?.addEventListener("formdata", ({ formData }) => {
  const chosen = formData.getAll("run").filter(Boolean);
  formData.delete("run");
  for (const run of chosen) formData.append("run", run);
});
