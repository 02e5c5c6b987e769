/**
 * The page of charts: every number of one run or several, from the server's buckets.
 *
 * What is shown stands in the address. Names and lengths of series are asked for every few seconds;
 * a chart asks for its buckets when something of it is new, and only while it is on the screen.
 */

import { BudgetCard } from "./budget-card.js";
import { element, setText } from "./dom.js";
import { clock } from "./format.js";
import { MetricBoard } from "./metric-board.js";
import { chartsFrom } from "./metric-names.js";
import { readView, writeView } from "./metric-view.js";
import { browser } from "./stream.js";
import { Waterfall } from "./waterfall.js";

const EVERY_MS = 3_000;
const LONGEST_WAIT_MS = 30_000;

const page = JSON.parse(document.getElementById("page").textContent);
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const control = (name) => document.querySelector(`[data-control="${name}"]`);
const runs = new Map(page.runs.map((run) => [run.id, run]));
const budget = new BudgetCard();
const waterfall = new Waterfall(); // of one run: steps of several are not told apart in it
let view = readView(location.search);
let lostSince = null;
const board = new MetricBoard({ runs, view: () => view, zoom, onFault: lost });

/** Puts every chart that is asked for into its section. */
function arrange() {
  const charts = chartsFrom([...runs.values()], view.q);
  const host = part("charts");
  const sections = new Map([...host.children].map((section) => [section.dataset.section, section]));
  board.arrange(charts, (root, chart) => {
    const section = sections.get(chart.section) ?? sectionOf(chart.section);
    sections.set(chart.section, section);
    host.append(section);
    section.lastElementChild.append(root);
  });
  const quality = sections.get("Search quality");
  if (quality && !view.q) quality.lastElementChild.prepend(budget.root);
  else budget.root.remove();
  const time = sections.get("Time");
  if (time && !view.q && runs.size === 1) time.lastElementChild.prepend(waterfall.root);
  else waterfall.root.remove();
  for (const section of sections.values()) if (!section.lastElementChild.children.length) section.remove();
  part("none").hidden = charts.length > 0;
  setText(part("noneText"), view.q ? "No chart has this name." : "No numbers yet. They appear here as soon as the run tells some.");
}

function sectionOf(name) {
  const id = `charts-${name.replaceAll(" ", "-").toLowerCase()}`;
  return element(
    "section",
    { "data-section": name, "aria-labelledby": id },
    element("h2", { id, class: "charts-title" }, name),
    element("div", { class: "charts" }),
  );
}

async function showSteps() {
  if (runs.size !== 1) return;
  const { steps } = await browser.load(`${page.runs[0].steps}?limit=30`);
  waterfall.show(steps);
}

async function tick() {
  if (!document.hidden) {
    try {
      const { any, isNew } = await board.ask();
      if (any) {
        arrange();
        budget.show([...runs.values()]);
        await showSteps();
        await board.refresh(isNew);
      } else if (!board.cards.size) arrange();
      found();
    } catch (error) {
      lost(error);
    }
  }
  const late = lostSince ? Date.now() - lostSince : 0;
  setTimeout(tick, Math.min(LONGEST_WAIT_MS, EVERY_MS + late / 4));
}

function lost(error) {
  console.warn("grove charts:", error.message);
  lostSince ??= Date.now();
  part("connection").hidden = false;
  setText(part("connectionText"), `You see what was known at ${clock(lostSince)}. The page tries again by itself.`);
  tellState("stale", "reconnecting");
}

function found() {
  lostSince = null;
  part("connection").hidden = true;
  tellState("live", "live");
  board.catchUp();
}

function tellState(kind, text) {
  part("stream").dataset.kind = kind;
  setText(part("stream"), text);
}

function redraw(since = null) {
  return board.refresh(undefined, since).catch(lost);
}

function zoom(from, to) {
  const since = performance.now();
  change({ from, to }, since);
}

function change(changes, since = null) {
  // A range of steps means nothing on another axis.
  if (changes.x && changes.x !== view.x) changes = { ...changes, from: null, to: null };
  view = { ...view, ...changes };
  history.replaceState(null, "", writeView(location.search, view));
  showControls();
  if ("q" in changes) arrange();
  redraw(since);
}

function showControls() {
  for (const name of ["x", "band", "q", "smooth"]) if (control(name).value !== String(view[name])) control(name).value = view[name];
  for (const name of ["logX", "logY"]) control(name).setAttribute("aria-pressed", String(view[name]));
  control("whole").hidden = view.from === null;
  control("band").closest("label").hidden = runs.size < 2;
  setText(control("smoothed"), view.smooth ? view.smooth.toFixed(2) : "off");
}

for (const name of ["x", "band"]) control(name).addEventListener("change", ({ target }) => change({ [name]: target.value }));
control("q").addEventListener("input", ({ target }) => change({ q: target.value }));
control("smooth").addEventListener("input", ({ target }) => change({ smooth: Number(target.value) }));
for (const name of ["logX", "logY"]) control(name).addEventListener("click", () => change({ [name]: !view[name] }));
control("whole").addEventListener("click", () => change({ from: null, to: null }, performance.now()));
new ResizeObserver(() => board.resize()).observe(part("charts"));
addEventListener("themechange", () => board.themeChanged());
addEventListener("popstate", () => change(readView(location.search)));

showControls();
if (runs.size) tick();
else arrange();
