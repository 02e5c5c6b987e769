/**
 * One chart of the page of charts: lines of buckets, their spread as bands, a table of the same.
 *
 * It asks the server only while it is on the screen. After a zoom, `data-drawn-ms` of its root holds
 * the milliseconds from the mouse's release to the drawn picture, `data-points` how many points stand
 * behind it, and an event `grove:drawn` bubbles with both: benchmarks read `zoom_1m_points_ms` there.
 */

import uPlot from "../vendor/uplot/uPlot.esm.js";
import { element, setText } from "./dom.js";
import { duration, number, percent } from "./format.js";
import { ALERTS, alerts } from "./health.js";
import { align, band, isShare, smoothed } from "./metric-model.js";

const HEIGHT = 210;
const MOST_LINES = 24;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 4]];
const COLOURS = ["--agent-1", "--agent-2", "--agent-3", "--phase-2", "--agent-5", "--agent-6", "--phase-3", "--agent-4"];

export class MetricCard {
  /** @param world {load(line, range), view(), zoom(from, to), runs: Map(id -> run), extent(chart)} */
  constructor(chart, world) {
    this.world = world;
    this.visible = false;
    this.plotHost = element("div", { class: "plot" });
    this.said = element("div", { class: "none" }, "Loading…");
    this.key = element("div", { class: "chart-key" });
    this.alert = element("p", { class: "small chart-alert", hidden: true });
    this.at = element("span", { class: "small at" });
    this.amount = element("span", { class: "small hint" });
    this.table = element("details", { class: "chart-table" }, element("summary", { class: "small" }, "Table"));
    this.table.addEventListener("toggle", () => this.#fillTable());
    this.root = element(
      "section",
      { class: "card chart", "data-metric": chart.id, "aria-label": chart.title },
      element("div", { class: "chart-head" }, element("h3", {}, chart.title), this.amount, this.at),
      this.alert, this.said, this.plotHost, this.key, this.table,
    );
    this.take(chart);
  }

  take(chart) {
    this.chart = { ...chart, lines: chart.lines.slice(0, MOST_LINES) };
    this.leftOut = chart.lines.length - this.chart.lines.length;
  }

  /** Asks for what the view now is; the answer to an older question is dropped. */
  async refresh(since = null) {
    if (!this.visible) {
      this.stale = true;
      return;
    }
    this.stale = false;
    const asked = (this.asked = {});
    const view = this.world.view();
    const points = Math.max(100, Math.ceil((this.plotHost.clientWidth || 500) / 100) * 100);
    const extent = this.world.extent(this.chart, view);
    const range = { x: view.x, from: view.from ?? extent[0], to: view.to ?? extent[1], points, log: view.logX };
    try {
      const told = await Promise.all(this.chart.lines.map((line) => this.world.load(line, range)));
      if (this.asked !== asked) return;
      this.#draw(told, range, view);
      if (since !== null) this.#tellDrawn(since);
    } catch (error) {
      if (this.asked !== asked) return;
      this.stale = true;
      if (!this.plot) this.#say(`This chart could not be loaded: ${error.message}. It is tried again.`);
      throw error;
    }
  }

  resize() {
    const width = this.plotHost.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  /** Colours come from the theme when a plot is made. */
  rebuild() {
    this.shape = null;
    return this.refresh();
  }

  #say(text) {
    this.said.hidden = !text;
    this.plotHost.hidden = Boolean(text);
    setText(this.said, text);
  }

  #tellDrawn(since) {
    const ms = performance.now() - since;
    this.root.dataset.drawnMs = ms.toFixed(1);
    const detail = { ms, points: this.total };
    this.root.dispatchEvent(new CustomEvent("grove:drawn", { bubbles: true, detail }));
  }

  #draw(told, range, view) {
    this.total = told.reduce((sum, one) => sum + one.points, 0);
    this.root.dataset.points = this.total;
    const { x, columns } = align(told, range);
    if (!x.length) {
      this.#say(view.from === null ? "No data yet" : "No points in this range");
      setText(this.amount, "");
      return;
    }
    this.#say("");
    this.lines = this.#linesOf(columns, view);
    this.x = x;
    this.logY = view.logY;
    const shown = columns.reduce((sum, column) => sum + column.count.filter((n) => n !== null).length, 0);
    setText(this.amount, this.#amountText(shown));
    const shape = JSON.stringify([this.lines.map((line) => line.label), view.logX, view.logY, view.x]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.#build(view, range);
    } else {
      this.range = range;
      this.plot.setData(this.#data());
    }
    this.#values(null);
    this.#showAlerts();
    if (this.table.open) this.#fillTable();
  }

  /** Never a silent sample: where a picture has fewer places than points, it says what it shows. */
  #amountText(shown) {
    const left = this.leftOut ? ` · ${this.leftOut} more lines are not drawn` : "";
    const points = `${this.total.toLocaleString("en-US")} points`;
    return (this.total > shown ? `all ${points}, as least, mean and greatest` : points) + left;
  }

  /** One line for each series; or, of runs with the same settings, one for all their seeds. */
  #linesOf(columns, view) {
    const { runs } = this.world;
    const several = runs.size > 1;
    const made = this.chart.lines.map((line, index) => {
      const run = runs.get(line.run);
      const label = [several ? run.label : "", line.part].filter(Boolean).join(" · ");
      return { run, part: line.part, label: label || "all", ...columns[index], mean: smoothed(columns[index].mean, view.smooth) };
    });
    const parts = [...new Set(made.map((line) => line.part))];
    const groups = new Map();
    for (const line of made) {
      const id = view.band === "none" ? line.run.id : line.run.group;
      const key = `${id} ${line.part}`;
      groups.set(key, [...(groups.get(key) ?? []), line]);
    }
    const ids = [...new Set([...runs.values()].map((run) => (view.band === "none" ? run.id : run.group)))];
    return [...groups.values()].map((lines) => {
      const [{ run, part }] = lines;
      const place = ids.indexOf(view.band === "none" ? run.id : run.group);
      const look = several && ids.length > 1
        ? { colour: place, dash: parts.indexOf(part) }
        : { colour: run.agents.includes(part) || !part ? run.agents.indexOf(part) : parts.indexOf(part), dash: 0 };
      if (lines.length === 1 || view.band === "none") return { ...lines[0], ...look };
      const label = [`${run.name}, ${lines.length} seeds`, part].filter(Boolean).join(" · ");
      return { run, part, label, ...look, ...band(lines.map((line) => line.mean), view.band) };
    });
  }

  #data() {
    const positive = (values) => (this.logY ? values.map((value) => (value > 0 ? value : null)) : values);
    return [this.x, ...this.lines.flatMap((line) => [line.most, line.least, line.mean].map(positive))];
  }

  #build(view, range) {
    this.range = range;
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const token = (name) => style.getPropertyValue(name).trim();
    this.colours = this.lines.map((line) => token(line.colour < 0 ? "--line-team" : COLOURS[line.colour % COLOURS.length]));
    const grid = { stroke: token("--grid"), width: 1 };
    const axis = { stroke: token("--muted"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const series = this.lines.flatMap((line, index) => this.#seriesOf(line, this.colours[index]));
    const bands = this.lines.map((_, index) => ({
      series: [3 * index + 1, 3 * index + 2],
      fill: `color-mix(in srgb, ${this.colours[index]} 18%, transparent)`,
    }));
    const options = {
      width: this.plotHost.clientWidth || 360,
      height: HEIGHT,
      legend: { show: false },
      cursor: {
        sync: { key: "grove-metrics", scales: ["x", null] },
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        bind: { dblclick: () => () => this.world.zoom(null, null) },
      },
      scales: {
        x: { time: false, distr: view.logX ? 3 : 1, range: () => this.#spanX() },
        y: view.logY ? { distr: 3 } : { range: (_, least, most) => this.#spanY(least, most) },
      },
      axes: [
        { ...axis, size: 26, gap: 4, space: 60, values: (_, ticks) => ticks.map((tick) => xText(view.x, tick)) },
        { ...axis, size: 58, gap: 6, values: (_, ticks) => ticks.map((tick) => this.#text(tick, 0)) },
      ],
      series: [{}, ...series],
      bands,
      hooks: {
        setCursor: [(plot) => this.#values(plot.cursor.idx)],
        setSelect: [(plot) => this.#selected(plot)],
        drawClear: [(plot) => this.#paintAlert(plot, token("--bad-soft"))],
      },
    };
    this.plot = new uPlot(options, this.#data(), this.plotHost);
    this.#buildKey();
  }

  #seriesOf(line, colour) {
    const edge = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
    const few = this.x.length < 40;
    const dash = DASHES[line.dash % DASHES.length];
    const mean = { stroke: colour, width: 1.6, dash, spanGaps: true, points: { show: few, size: 5, fill: colour } };
    return [edge, { ...edge }, mean];
  }

  #spanX() {
    const { from, to, log } = this.range;
    const low = log ? Math.max(from, 1) : from;
    return to > low ? [low, to] : [low - 0.5, low + 0.5];
  }

  #spanY(least, most) {
    if (least === null || most === null) return [0, 1];
    const room = (most - least) * 0.08 || Math.abs(most) * 0.1 || 0.5;
    const low = least >= 0 && least - room < 0 ? 0 : least - room;
    return [low, isShare(this.chart.id) ? Math.min(1.02, most + room) : most + room];
  }

  #paintAlert(plot, colour) {
    const rule = ALERTS[this.chart.id];
    if (!rule) return;
    const { left, top, width, height } = plot.bbox;
    const at = (value) => Math.min(Math.max(plot.valToPos(value, "y", true), top), top + height);
    plot.ctx.fillStyle = colour;
    if (rule.above !== undefined) plot.ctx.fillRect(left, top, width, at(rule.above) - top);
    if (rule.below !== undefined) plot.ctx.fillRect(left, at(rule.below), width, top + height - at(rule.below));
  }

  #showAlerts() {
    const found = alerts(this.chart.id, this.lines.map(({ label, mean }) => ({ label, values: mean })));
    this.alert.hidden = !found.length;
    const text = found.map(({ label, value }) => `${label}: ${number(value)}`).join(", ");
    setText(this.alert, found.length ? `Look at this: ${text}; ${found[0].why}.` : "");
  }

  #selected(plot) {
    if (plot.select.width < 4) return;
    const [from, to] = [plot.select.left, plot.select.left + plot.select.width].map((at) => plot.posToVal(at, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.world.zoom(from, to);
  }

  #buildKey() {
    this.outputs = this.lines.map(() => element("b"));
    this.key.replaceChildren(
      ...this.lines.map((line, index) => {
        const toggle = ({ currentTarget: button }) => {
          const show = button.getAttribute("aria-pressed") === "false";
          button.setAttribute("aria-pressed", String(show));
          for (const place of [1, 2, 3]) this.plot.setSeries(3 * index + place, { show });
        };
        const attributes = { type: "button", "aria-pressed": "true", onclick: toggle };
        return element("button", attributes, swatch(this.colours[index], line.dash), line.label, this.outputs[index]);
      }),
    );
  }

  #text(value, digits = 1) {
    if (value === null || value === undefined) return "";
    return isShare(this.chart.id) ? percent(value, digits) : number(value);
  }

  /** Values under the cursor, or the newest ones. */
  #values(index) {
    const newest = index === null || index === undefined;
    this.lines.forEach(({ mean }, place) => {
      const value = newest ? mean.findLast((one) => one !== null) : mean[index];
      setText(this.outputs[place], value === null ? "–" : this.#text(value));
    });
    setText(this.at, newest ? "" : `${this.world.view().x} ${xText(this.world.view().x, this.x[index])}`);
  }

  #fillTable() {
    this.table.querySelector(".table-wrap")?.remove();
    if (!this.table.open || !this.x) return;
    const axis = this.world.view().x;
    const head = element("tr", {}, [axis, ...this.lines.map((line) => line.label)].map((text) => element("th", { scope: "col" }, text)));
    const rows = this.x.map((x, slot) => {
      const cells = this.lines.map((line) => element("td", {}, line.mean[slot] === null ? "–" : this.#text(line.mean[slot])));
      return element("tr", {}, element("th", { scope: "row" }, xText(axis, x)), cells);
    });
    const name = `${this.chart.title} as a table`;
    const table = element("table", { class: "small-table" }, element("thead", {}, head), element("tbody", {}, rows));
    this.table.append(element("div", { class: "table-wrap", tabindex: 0, role: "region", "aria-label": name }, table));
  }
}

function swatch(colour, dash) {
  const canvas = element("canvas", { width: 36, height: 20, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.setLineDash(DASHES[dash % DASHES.length].map((part) => part * 0.8));
  context.moveTo(0, 5);
  context.lineTo(18, 5);
  context.stroke();
  return canvas;
}

function xText(axis, value) {
  if (value === null || value === undefined) return "";
  if (axis === "time") return duration(value);
  return Math.abs(value) < 1e5 ? String(Number(value.toFixed(2))) : number(value);
}
