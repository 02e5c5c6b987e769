/**
 * One chart: its lines from the server's buckets, their newest values, a table of the same.
 *
 * It makes requests only while it is on the screen. After a zoom, `data-drawn-ms` of its root holds
 * the milliseconds from the mouse's release to the drawn picture, `data-points` the number of points
 * behind it, and an event `grove:drawn` bubbles with both: benchmarks read `zoom_1m_points_ms` there.
 */

import { element, setText } from "../lib/dom.js";
import { number, percent } from "../lib/format.js";
import { loadError } from "../lib/load-error.js";
import { alerts } from "../run/health.js";
import { isStacked, linesOf } from "./metric-lines.js";
import { align } from "./metric-buckets.js";
import { sourcesOf, withInterval } from "./metric-intervals.js";
import { MetricPlot, swatch, xText } from "./metric-plot.js";

const MOST_LINES = 24;

export class MetricCard {
  /** @param context {load(line, range), view(), zoom(from, to), runs: Map(id -> run), extent(chart)} */
  constructor(chart, context) {
    this.context = context;
    this.visible = false;
    this.plotHost = element("div", { class: "plot" });
    this.message = element("div", { class: "none" }, "Loading…");
    this.legend = element("div", { class: "chart-key" });
    this.alert = element("p", { class: "small chart-alert", hidden: true });
    this.cursorText = element("span", { class: "small at" });
    const hint = element("span", { class: "small hint", title: chart.hint }, chart.hint);
    this.amount = element("span");
    this.table = element("details", { class: "chart-table", hidden: true }, element("summary", { class: "small" }, "Table ", this.amount));
    this.table.addEventListener("toggle", () => this.#fillTable());
    this.root = element(
      "section",
      { class: "card chart", "data-metric": chart.id, "aria-label": chart.title },
      element("div", { class: "chart-head" }, element("h3", {}, chart.title), hint, this.cursorText),
      this.alert, this.message, this.plotHost, this.legend, this.table,
    );
    this.plot = new MetricPlot(this.plotHost, {
      cursor: (index) => this.#values(index),
      zoom: (from, to) => context.zoom(from, to),
      text: (value, digits) => this.#text(value, digits),
    });
    this.setChart(chart);
  }

  setChart(chart) {
    const namesOf = (lines) => lines?.map((line) => line.run + line.metric).join();
    this.changed = namesOf(chart.lines) !== namesOf(this.chart?.lines);
    this.chart = { ...chart, lines: chart.lines.slice(0, MOST_LINES) };
    this.leftOut = chart.lines.length - this.chart.lines.length;
  }

  /** Requests the data of the current view; discards responses to older requests. */
  async refresh(since = null) {
    if (!this.visible) {
      this.stale = true;
      return;
    }
    this.stale = false;
    this.changed = false;
    const request = (this.request = {});
    this.root.setAttribute("aria-busy", String(!this.lines));
    const view = this.context.view();
    const points = Math.max(100, Math.ceil((this.plotHost.clientWidth || 500) / 100) * 100);
    const extent = this.context.extent(this.chart);
    const range = { x: view.x, from: view.from ?? extent[0], to: view.to ?? extent[1], points, log: view.logX };
    try {
      const errors = this.#errorLines();
      const all = [...this.chart.lines, ...errors.keys()];
      const responses = await Promise.all(all.map((line) => this.context.load(line, range)));
      if (this.request !== request) return;
      this.root.setAttribute("aria-busy", "false");
      this.#draw(responses, range, view, errors);
      if (since !== null) this.#reportDrawn(since);
    } catch (error) {
      if (this.request !== request) return;
      this.stale = true;
      this.root.setAttribute("aria-busy", "false");
      if (!this.lines) this.#showMessage(`This chart could not be loaded. ${loadError(error).text}`);
      throw error;
    }
  }

  /** Returns Map({run, metric} -> line index) of the standard errors behind the chart's intervals. */
  #errorLines() {
    const lines = new Map();
    this.chart.lines.forEach(({ run, metric }, index) => {
      const error = sourcesOf(metric)?.error;
      const isReported = this.context.runs.get(run).metrics.some(({ name }) => name === error);
      if (isReported) lines.set({ run, metric: error }, index);
    });
    return lines;
  }

  /** Returns the columns of the lines, with intervals where the runs report what these need. */
  #columns(aligned, errors) {
    const { lines } = this.chart;
    const indices = [...errors.values()];
    return lines.map(({ run, metric }, index) => {
      const sources = sourcesOf(metric);
      if (!sources) return aligned[index];
      const { metrics } = this.context.runs.get(run);
      const problems = metrics.find(({ name }) => name === sources.problems)?.last?.value;
      const errorIndex = indices.indexOf(index);
      return withInterval(aligned[index], errorIndex < 0 ? null : aligned[lines.length + errorIndex].mean, problems);
    });
  }

  resize() {
    this.plot.resize();
  }

  /** Draws again in the colours of another theme. */
  rebuild() {
    this.plot.invalidate();
    return this.refresh();
  }

  #showMessage(text) {
    this.message.hidden = !text;
    this.plotHost.hidden = Boolean(text);
    setText(this.message, text);
  }

  #reportDrawn(since) {
    const ms = performance.now() - since;
    this.root.dataset.drawnMs = ms.toFixed(1);
    const detail = { ms, points: this.total };
    this.root.dispatchEvent(new CustomEvent("grove:drawn", { bubbles: true, detail }));
  }

  #draw(responses, range, view, errors) {
    this.total = responses.slice(0, this.chart.lines.length).reduce((sum, one) => sum + one.points, 0);
    this.root.dataset.points = this.total;
    const { x, columns: aligned } = align(responses, range);
    const columns = this.#columns(aligned, errors);
    const { id, share } = this.chart;
    this.table.hidden = !x.length;
    if (!x.length) {
      this.lines = null;
      this.legend.replaceChildren();
      this.plot.invalidate();
      this.alert.hidden = true;
      this.#showMessage(this.chart.empty ?? (view.from === null ? "No data yet" : "No points in this range"));
      return;
    }
    this.#showMessage("");
    const { runs } = this.context;
    this.stacked = isStacked(id, runs, view);
    this.lines = linesOf(this.chart, columns, view, runs);
    this.x = x;
    const shown = columns.reduce((sum, column) => sum + column.count.filter((n) => n !== null).length, 0);
    setText(this.amount, this.#amountText(shown));
    const { stacked, lines } = this;
    if (this.plot.show({ id, share, x, lines, stacked, view, range })) this.#buildLegend();
    this.#values(null);
    this.#showAlerts();
    if (this.table.open) this.#fillTable();
  }

  /** Describes how many values are shown; says so where they are buckets of several points. */
  #amountText(shown) {
    const left = this.leftOut ? ` · ${this.leftOut} more lines not shown` : "";
    const [bucketText, points] = [shown, this.total].map((n) => n.toLocaleString("en-US"));
    const all = `${points} ${this.total === 1 ? "point" : "points"}`;
    return (this.total > shown ? `${bucketText} buckets of ${all}: min, mean, max` : `of ${all}`) + left;
  }

  #showAlerts() {
    const active = alerts(this.chart.id, this.lines.map(({ label, mean }) => ({ label, values: mean })));
    this.alert.hidden = !active.length;
    const text = active.map(({ label, value }) => `${label}: ${number(value)}`).join(", ");
    setText(this.alert, active.length ? `Alert: ${text}. ${active[0].why}.` : "");
  }

  #buildLegend() {
    const { stacked } = this;
    this.outputs = this.lines.map(() => element("b"));
    this.legend.replaceChildren(
      ...this.lines.map((line, index) => {
        const toggle = ({ currentTarget: button }) => {
          const show = button.getAttribute("aria-pressed") === "false";
          button.setAttribute("aria-pressed", String(show));
          this.plot.toggle(index, show);
        };
        // A part of a whole cannot be left out of it, nor the only line of its chart.
        const disabled = stacked || this.lines.length < 2;
        const attributes = { type: "button", "aria-pressed": "true", disabled, onclick: toggle };
        const patch = swatch(this.plot.colours[index], line.dash, stacked);
        return element("button", attributes, patch, line.label, this.outputs[index]);
      }),
    );
  }

  #text(value, digits = 1) {
    if (value === null || value === undefined) return "";
    return this.chart.share ? percent(value, digits) : number(value);
  }

  /** Shows the values under the cursor, or the newest ones. */
  #values(index) {
    if (!this.lines || !this.outputs) return;
    this.lines.forEach(({ mean }, position) => {
      const value = index === null ? mean.findLast((one) => one !== null) : mean[index];
      setText(this.outputs[position], value === null || value === undefined ? "–" : this.#text(value));
    });
    const { x } = this.context.view();
    setText(this.cursorText, index === null ? "" : `${x} ${xText(x, this.x[index])}`);
  }

  #cellText({ mean, least, most, interval }, slot) {
    if (mean[slot] === null) return "–";
    const value = this.#text(mean[slot]);
    return interval ? `${value} [${this.#text(least[slot])}, ${this.#text(most[slot])}]` : value;
  }

  #fillTable() {
    this.table.querySelector(".table-wrap")?.remove();
    if (!this.table.open || !this.lines) return;
    const axis = this.context.view().x;
    const head = element("tr", {}, [axis, ...this.lines.map((line) => line.label)].map((text) => element("th", { scope: "col" }, text)));
    const rows = this.x.map((x, slot) => {
      const cells = this.lines.map((line) => element("td", {}, this.#cellText(line, slot)));
      return element("tr", {}, element("th", { scope: "row" }, xText(axis, x)), cells);
    });
    const name = `${this.chart.title} as a table`;
    const table = element("table", { class: "small-table" }, element("thead", {}, head), element("tbody", {}, rows));
    this.table.append(element("div", { class: "table-wrap", tabindex: 0, role: "region", "aria-label": name }, table));
  }
}
