/**
 * Durations of the newest steps: one bar for each step, its phases one after another, then the time
 * in no phase. What a step waited for is named alongside.
 */

import { element, svg } from "../lib/dom.js";
import { seconds } from "../lib/format.js";

const PHASES = ["generate", "verify", "credit", "learn", "sync", "validate", "checkpoint"];
const WIDTH = 1000;

/** Returns the parts of a step in order, [{name, seconds}]; "other" is in no phase. Pure. */
export function partsOf({ seconds: all, phases }) {
  // An external engine may not have measured all of them.
  const names = [...PHASES.filter((name) => phases[name] > 0), ...Object.keys(phases).filter((name) => !PHASES.includes(name) && Number.isFinite(phases[name]))];
  const parts = names.map((name) => ({ name, seconds: phases[name] }));
  const other = all - parts.reduce((sum, part) => sum + part.seconds, 0);
  return Number.isFinite(all) && other > all * 0.005 ? [...parts, { name: "other", seconds: other }] : parts;
}

/** Returns what a step waited for: "sandbox 1.2 s, weights 300 ms". Pure. */
export function waitsText(waits) {
  const entries = Object.entries(waits).sort((a, b) => b[1] - a[1]);
  return entries.map(([name, spent]) => `${name} ${seconds(spent)}`).join(", ");
}

export class Waterfall {
  constructor() {
    this.key = element("div", { class: "chart-key" });
    this.body = element("div", { class: "table-wrap", tabindex: 0, role: "region", "aria-label": "Seconds of the newest steps" });
    this.root = element(
      "section",
      { class: "card chart waterfall", "aria-label": "Seconds of the newest steps" },
      element("div", { class: "chart-head" }, element("h3", {}, "Seconds of the newest steps"),
        element("span", { class: "small hint" }, "phases in order, and waits")),
      this.key, this.body,
    );
  }

  /** @param steps newest first, as the server returns them. */
  show(steps) {
    const longest = Math.max(...steps.map((step) => step.seconds ?? partsOf(step).reduce((sum, part) => sum + part.seconds, 0)), 1e-9);
    const names = [...new Set(steps.flatMap((step) => partsOf(step).map((part) => part.name)))];
    this.key.replaceChildren(...names.map((name) => element("span", {}, swatch(name), ` ${name}`)));
    const head = ["Step", "Seconds", "Phases", "Waits"].map((name) => element("th", { scope: "col" }, name));
    const rows = steps.map((step) =>
      element("tr", {}, element("th", { scope: "row" }, String(step.step)), element("td", {}, seconds(step.seconds)),
        element("td", { class: "bar" }, bar(step, longest)), element("td", {}, waitsText(step.waits) || "–")));
    const table = element("table", { class: "small-table" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows));
    this.body.replaceChildren(table);
  }
}

function bar(step, longest) {
  let at = 0;
  const parts = partsOf(step).map(({ name, seconds: spent }) => {
    const width = (spent / longest) * WIDTH;
    const box = svg("rect", { x: at, y: 0, width, height: 14, class: look(name) }, svg("title", {}, `${name} ${seconds(spent)}`));
    at += width;
    return box;
  });
  const description = partsOf(step).map(({ name, seconds: spent }) => `${name} ${seconds(spent)}`).join(", ");
  return svg("svg", { viewBox: `0 0 ${WIDTH} 14`, preserveAspectRatio: "none", role: "img", "aria-label": description }, ...parts);
}

function swatch(name) {
  return svg("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, class: look(name) }));
}

function look(name) {
  const index = PHASES.indexOf(name);
  return `phase-${index < 0 ? 8 : index + 1}`;
}
