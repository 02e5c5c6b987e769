/**
 * The charts of a run. Each shows one entry of `chartsOf` (series.js) with uPlot.
 *
 * Only charts on the screen are drawn; the others catch up when they are scrolled to. All
 * cursors move together, so one step is read across all charts.
 */

import uPlot from "../vendor/uplot/uPlot.esm.js";
import { element, setText } from "./dom.js";
import { number, percent, seconds } from "./format.js";
import { stack } from "./series.js";

const HEIGHT = 190;
const AHEAD = { rootMargin: "300px" }; // drawn a little before they are scrolled to
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 4]];
const UNITS = { share: (value) => percent(value, 1), number, seconds };
const AXES = { share: (value) => percent(value, 0), number, seconds };

export class Charts {
  constructor(host) {
    this.host = host;
    this.after = host.firstElementChild; // what is there already stays behind the charts
    this.cards = new Map();
    this.watcher = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const card = this.cards.get(target.dataset.chart);
        card.visible = isIntersecting;
        if (isIntersecting) card.draw();
      }
    }, AHEAD);
    new ResizeObserver(() => this.cards.forEach((card) => card.resize())).observe(host);
  }

  /** @param charts as `chartsOf` gives them; `agents` are {name, position}. */
  show(charts, agents) {
    for (const chart of charts) {
      let card = this.cards.get(chart.id);
      if (!card) {
        card = new ChartCard(chart);
        this.cards.set(chart.id, card);
        this.host.insertBefore(card.root, this.after);
        this.watcher.observe(card.root);
      }
      card.take(chart, agents);
    }
  }

  themeChanged() {
    this.cards.forEach((card) => card.rebuild());
  }
}

class ChartCard {
  constructor({ id, title, hint }) {
    this.plotHost = element("div", { class: "plot" });
    this.none = element("div", { class: "none" }, "No data yet");
    this.key = element("div", { class: "chart-key" });
    this.at = element("span", { class: "small at" });
    this.root = element(
      "section",
      { class: "card chart", "data-chart": id, "aria-label": title },
      element(
        "div",
        { class: "chart-head" },
        element("h3", {}, title),
        element("span", { class: "small hint", title: hint }, hint),
        this.at,
      ),
      this.none,
      this.plotHost,
      this.key,
    );
    this.hidden = new Set();
    this.visible = false;
  }

  take(chart, agents) {
    this.chart = chart;
    this.agents = agents;
    this.fresh = false;
    if (this.visible) this.draw();
  }

  draw() {
    if (this.fresh || !this.chart) return;
    this.fresh = true;
    const { x, lines } = this.chart;
    this.none.hidden = x.length > 0;
    this.plotHost.hidden = x.length === 0;
    const names = lines.map((line) => line.label).join("\n");
    if (!x.length) return;
    if (!this.plot || names !== this.names) {
      this.names = names;
      this.#build();
    } else this.plot.setData(this.#data());
    this.#values(null);
  }

  rebuild() {
    this.names = null;
    this.fresh = false;
    if (this.visible) this.draw();
  }

  resize() {
    const width = this.plotHost.clientWidth;
    if (this.plot && width && width !== this.plot.width) {
      this.plot.setSize({ width, height: HEIGHT });
    }
  }

  #data() {
    const { x, lines, stacked } = this.chart;
    return [x, ...(stacked ? stack(lines) : lines.map((line) => line.values))];
  }

  #build() {
    this.plot?.destroy();
    const colours = this.chart.lines.map((line, index) => this.#colour(line, index));
    this.plot = new uPlot(this.#options(colours), this.#data(), this.plotHost);
    this.#buildKey(colours);
  }

  #colour(line, index) {
    const style = getComputedStyle(document.documentElement);
    const position = this.agents.find((agent) => agent.name === line.agent)?.position;
    if (position !== undefined) return style.getPropertyValue(`--agent-${(position % 6) + 1}`).trim();
    const single = this.chart.stacked ? `--phase-${(index % 8) + 1}` : "--line-team";
    return style.getPropertyValue(single).trim();
  }

  #options(colours) {
    const { lines, stacked, unit } = this.chart;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--muted").trim();
    const grid = { stroke: style.getPropertyValue("--grid").trim(), width: 1 };
    const axis = { stroke: ink, grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const steps = (_, splits) => splits.map((step) => (Number.isInteger(step) ? step : null));
    const scale = (_, ticks) => ticks.map((tick) => AXES[unit](tick));
    return {
      width: this.plotHost.clientWidth || 360,
      height: HEIGHT,
      legend: { show: false },
      cursor: {
        sync: { key: "grove" },
        y: false,
        drag: { x: false, y: false },
        points: { size: 7 },
      },
      scales: { x: { time: false, range: spanX }, y: { range: (_, __, top) => this.#spanY(top) } },
      axes: [
        { ...axis, size: 26, gap: 4, values: steps },
        { ...axis, size: 54, gap: 6, values: scale },
      ],
      series: [{}, ...lines.map((line, index) => this.#series(line, index, colours[index]))],
      bands: stacked ? lines.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
      hooks: { setCursor: [(plot) => this.#values(plot.cursor.idx)] },
    };
  }

  #series(line, index, colour) {
    const { stacked, x } = this.chart;
    const position = this.agents.find((agent) => agent.name === line.agent)?.position ?? 0;
    return {
      stroke: colour,
      width: line.agent || stacked ? 1.75 : 1.5,
      dash: stacked ? [] : DASHES[position % DASHES.length],
      fill: stacked ? `color-mix(in srgb, ${colour} 55%, transparent)` : undefined,
      spanGaps: true,
      show: !this.hidden.has(line.name),
      points: { show: !stacked && x.length < 40, size: 5, fill: colour },
    };
  }

  #spanY(top) {
    const { unit, lines, stacked } = this.chart;
    if (unit === "share") return [0, stacked ? 1 : Math.min(1, Math.max(0.1, (top ?? 0) * 1.15))];
    const all = stacked ? [] : lines.flatMap((line) => line.values).filter((v) => v !== null);
    const least = Math.min(0, ...all.map((value) => value * 1.1));
    return [least, top > 0 ? top * 1.12 : Math.max(1e-6, least + 1e-6)];
  }

  #buildKey(colours) {
    this.outputs = [];
    const items = this.chart.lines.map((line, index) => {
      const output = element("b");
      this.outputs.push(output);
      const toggle = () => this.#toggle(line, index, button);
      const button = element(
        "button",
        { type: "button", "aria-pressed": String(!this.hidden.has(line.name)), onclick: toggle },
        this.#swatch(line, colours[index]),
        line.label,
        output,
      );
      if (this.chart.stacked || this.chart.lines.length < 2) button.disabled = true;
      return button;
    });
    this.key.replaceChildren(...items);
  }

  #swatch(line, colour) {
    const canvas = element("canvas", { width: 36, height: 20, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    context.strokeStyle = colour;
    context.fillStyle = colour;
    if (this.chart.stacked) context.fillRect(3, 0, 12, 10);
    else {
      const position = this.agents.find((agent) => agent.name === line.agent)?.position ?? 0;
      context.lineWidth = 2;
      context.setLineDash(DASHES[position % DASHES.length].map((part) => part * 0.8));
      context.moveTo(0, 5);
      context.lineTo(18, 5);
      context.stroke();
    }
    return canvas;
  }

  #toggle(line, index, button) {
    const show = this.hidden.has(line.name);
    if (show) this.hidden.delete(line.name);
    else this.hidden.add(line.name);
    button.setAttribute("aria-pressed", String(show));
    this.plot.setSeries(index + 1, { show });
  }

  /** Values under the cursor, or the newest ones. */
  #values(index) {
    if (!this.outputs) return;
    const { x, lines, unit } = this.chart;
    const newest = index === null || index === undefined;
    lines.forEach(({ values }, place) => {
      const value = newest ? values.findLast((v) => v !== null) : values[index];
      setText(this.outputs[place], UNITS[unit](value));
    });
    this.root.dataset.step = newest ? x.at(-1) : x[index];
    setText(this.at, newest ? "" : `step ${x[index]}`);
  }
}

function spanX(_, least, most) {
  if (least === null || most === null) return [0, 1];
  return least === most ? [least - 0.5, most + 0.5] : [least, most];
}
