/** The page of charts: every metric of one run or several, by section. */

import { BudgetCard } from "../run/budget-card.js";
import { element, setText } from "../lib/dom.js";
import { chartsFrom } from "../metrics/metric-names.js";
import { MetricPage } from "./metric-page.js";
import { browser } from "../stream/stream.js";
import { Waterfall } from "../run/waterfall.js";

const page = JSON.parse(document.getElementById("page").textContent);
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const budget = new BudgetCard();
const waterfall = new Waterfall(); // of one run: it does not distinguish steps of several
const isSingleRun = page.runs.length === 1;

/** Inserts every chart that matches the query into its section. */
function arrange(board, runs, { q }) {
  const charts = chartsFrom(runs, q);
  const host = part("charts");
  const sections = new Map([...host.children].map((section) => [section.dataset.section, section]));
  board.arrange(charts, (root, chart) => {
    const section = sections.get(chart.section) ?? sectionOf(chart.section);
    sections.set(chart.section, section);
    host.append(section);
    section.lastElementChild.append(root);
  });
  const quality = sections.get("Search quality");
  if (quality && !q) quality.lastElementChild.prepend(budget.root);
  else budget.root.remove();
  const time = sections.get("Time");
  if (time && !q && isSingleRun) time.lastElementChild.prepend(waterfall.root);
  else waterfall.root.remove();
  for (const section of sections.values()) if (!section.lastElementChild.children.length) section.remove();
  part("none").hidden = charts.length > 0;
  setText(part("noneText"), q ? "No matching charts." : "No data yet. Charts appear here as soon as the run reports metrics.");
  budget.show(runs);
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
  const { steps } = await browser.load(`${page.runs[0].steps}?limit=30`);
  waterfall.show(steps);
}

/** Updates the displayed states of the runs from the server's last response. */
function showStates(runs) {
  for (const { id, state } of runs) {
    const pill = document.querySelector(`[data-run="${id}"] .pill`);
    const runState = page.states.find(({ value }) => value === state);
    if (!pill || !runState || pill.dataset.state === state) continue;
    Object.assign(pill.dataset, { state, colour: runState.colour });
    setText(pill, runState.label);
  }
}

new MetricPage(page.runs, { arrange, onStates: showStates, onData: isSingleRun ? showSteps : null });
