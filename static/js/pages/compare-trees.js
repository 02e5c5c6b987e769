/** The page that compares two trees of one problem on one axis, the number of nodes. */

import { bestSoFar, spent, within } from "../run/budget.js";
import { HOME } from "../forest/camera.js";
import { element, setText, svg } from "../lib/dom.js";
import { errorText } from "../lib/load-error.js";
import { fold } from "../stream/fold.js";
import { paintFocus } from "../forest/forest-paint.js";
import { count, number, percent } from "../lib/format.js";
import { layout } from "../forest/layout.js";
import { drawLegend } from "../forest/legend.js";
import { looksOf, readPalette } from "../forest/marks.js";
import { lookup } from "../node/node-look.js";
import { browser } from "../stream/stream.js";

const CURVE = { height: 200, left: 42, bottom: 22, top: 8 }; // px
const TALL = 360; // px height of a tree
const ROWS = [
  ["First solved", (one) => (one.solvedAt === null ? "not solved" : `node ${one.solvedAt}`)],
  ["Tokens until solved", (one) => (one.tokensToSolved === null ? "–" : number(one.tokensToSolved))],
  ["Best share of tests", (one) => percent(one.best, 0)],
  ["Nodes", (one) => number(one.nodes)],
  ["Tokens", (one) => number(one.tokens)],
  ["Width (children of the root)", (one) => number(one.width)],
  ["Depth", (one) => number(one.depth)],
];

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const page = JSON.parse(document.getElementById("page").textContent);
const names = [...new Set(page.trees.flatMap((tree) => tree.agents))];
const slider = part("budget");
const canvases = [...part("pair").querySelectorAll("canvas")];
let trees = [];
let palette = readPalette();

const team = () => looksOf(names, palette);

function draw() {
  const budget = Number(slider.value);
  setText(part("budgetText"), `the first ${count(budget, "node")} of each`);
  slider.setAttribute("aria-valuetext", count(budget, "node"));
  part("curves").replaceChildren(curves(budget));
  part("figures").replaceChildren(table(budget));
  trees.forEach((tree, index) => drawTree(canvases[index], within(tree, budget)));
  drawLegend(part("legend"), team(), palette, "score");
}

function drawTree(canvas, tree) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth - 2;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(TALL * ratio);
  canvas.style.height = `${TALL}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const picture = { palette, lookOf: lookup(team(), palette), camera: HOME, pulse: 0 };
  paintFocus(context, { x: 0, y: 0, width, height: TALL }, tree, layout(tree.nodes.values()), picture);
}

/** Draws the best share of tests over nodes, a step line per tree, and the budget as a vertical. */
function curves(budget) {
  const { height, left, bottom, top } = CURVE;
  const width = Math.max(240, part("curves").clientWidth - 32); // without its padding
  const most = Math.max(1, Number(slider.max));
  const x = (k) => left + ((width - left - 8) * k) / most;
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const text = (at, up, label, anchor) => svg("text", { x: at, y: up, "text-anchor": anchor }, label);
  const ticks = [0, 0.5, 1].map((share) => [
    svg("line", { x1: left, x2: width - 8, y1: y(share), y2: y(share), class: "grid" }),
    text(left - 6, y(share) + 4, percent(share, 0), "end"),
  ]);
  const lines = trees.map((tree, index) => {
    const way = bestSoFar(tree).map((best, k) => (k ? `H${x(k)}V${y(best)}` : `M${x(0)},${y(best)}`));
    return svg("path", { d: way.join(""), class: `curve of-${index}` });
  });
  const uprights = [svg("line", { x1: x(budget), x2: x(budget), y1: top, y2: height - bottom, class: "at" })];
  const ends = [text(left, height - 5, "0", "middle"), text(width - 10, height - 5, count(most, "node"), "end")];
  const descriptions = trees.map((tree, index) => `${page.trees[index].label}: ${percent(bestSoFar(tree).at(-1), 0)}`);
  const about = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Best share of tests over nodes. ${descriptions.join("; ")}` };
  return svg("svg", about, ...ticks.flat(), ...uprights, ...lines, ...ends);
}

function table(budget) {
  const figures = trees.map((tree) => spent(tree, budget));
  const head = page.trees.map((tree, index) =>
    element("th", { scope: "col" }, element("span", { class: `swatch of-${index}`, "aria-hidden": "true" }), tree.label),
  );
  const rows = ROWS.map(([name, format]) =>
    element("tr", {}, element("th", { scope: "row" }, name), figures.map((one) => element("td", {}, format(one)))),
  );
  return element(
    "table",
    { class: "small-table" },
    element("thead", {}, element("tr", {}, element("td"), head)),
    element("tbody", {}, rows),
  );
}

async function load() {
  trees = await Promise.all(
    page.trees.map(async ({ url, tree }) => fold((await browser.load(url)).events).trees.get(tree)),
  );
  const most = Math.max(...trees.map((tree) => bestSoFar(tree).length - 1));
  slider.max = most;
  slider.value = most;
  for (const name of ["compared", "pair"]) part(name).hidden = false;
  draw();
}

slider.addEventListener("input", draw);
addEventListener("resize", () => trees.length && draw());
addEventListener("themechange", () => {
  palette = readPalette();
  if (trees.length) draw();
});
async function attempt() {
  part("error").hidden = true;
  part("loading").hidden = false;
  try {
    await load();
  } catch (error) {
    console.warn("grove trees:", error.message);
    part("error").hidden = false;
    setText(part("errorText"), errorText(error.status));
  } finally {
    part("loading").hidden = true;
  }
}

part("retry").addEventListener("click", attempt);
attempt();
