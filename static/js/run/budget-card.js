/** The card over the budget of nodes: best score so far, and Pass@k with its 95 % interval. */

import { element } from "../lib/dom.js";
import { percent } from "../lib/format.js";
import { overBudget } from "../metrics/metric-buckets.js";
import { passkChart } from "../metrics/passk-chart.js";

export class BudgetCard {
  constructor() {
    this.chart = element("div", { class: "plot" });
    this.body = element("div", { class: "table-wrap", tabindex: 0, role: "region", "aria-label": "Over the budget" });
    const hint = "newest step; Pass@k with its 95 % interval over the trees";
    this.root = element(
      "section",
      { class: "card chart budget", "aria-label": "Over the budget of nodes" },
      element("div", { class: "chart-head" }, element("h3", {}, "Over the budget of nodes"), element("span", { class: "small hint" }, hint)),
      this.chart,
      this.body,
    );
  }

  /** @returns whether there is anything to show. */
  show(runs) {
    const series = runs.map((run) => ({ run, label: runs.length > 1 ? run.label : "", rows: overBudget(run.metrics) }));
    const drawn = series.filter((one) => one.rows.length);
    this.chart.replaceChildren(...(drawn.length ? [passkChart(drawn)] : []));
    const rows = series.flatMap(({ run, rows: mine }) =>
      mine.map(({ k, best, within, low, high }) =>
        element(
          "tr",
          {},
          runs.length > 1 ? element("td", {}, run.label) : null,
          element("th", { scope: "row" }, `k = ${k}`),
          element("td", {}, percent(best, 1)),
          element("td", {}, percent(within, 1)),
          element("td", { class: "muted" }, `${percent(low, 0)} to ${percent(high, 0)}`),
          element("td", {}, element("meter", { min: 0, max: 1, value: within, "aria-label": `Pass@${k}` })),
        ),
      ),
    );
    const names = [...(runs.length > 1 ? ["Run"] : []), "Nodes", "Best so far", "Pass@k", "Interval", ""];
    const head = element("tr", {}, names.map((name) => element(name ? "th" : "td", name ? { scope: "col" } : {}, name)));
    this.body.replaceChildren(element("table", { class: "small-table" }, element("thead", {}, head), element("tbody", {}, rows)));
    return rows.length > 0;
  }
}
