/** The plot of one chart with uPlot: lines of means, least and greatest as bands, or a stack. */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { duration, number } from "../lib/format.js";
import { ALERTS } from "../run/health.js";
import { interrupted, lonely, stack } from "./metric-lines.js";

const HEIGHT = 210;
const FEW = 40; // number of points below which each is drawn
const FOLLOWED = new Set(["mousemove", "mouseleave"]);
const AXIS_WIDTH = 58; // pixels of the labels of most charts, which then begin below one another
const AXIS_GAP = 6;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 4]];

export class MetricPlot {
  /** @param actions {cursor(index | null), zoom(from, to): null for the whole, text(value, digits)} */
  constructor(host, actions) {
    this.host = host;
    this.actions = actions;
  }

  /** @param shown {id, share, x, lines, stacked, view, range}; returns whether it was rebuilt. */
  show(shown) {
    this.shown = shown;
    const { id, lines, stacked, view } = shown;
    const shape = JSON.stringify([id, lines.map((line) => line.label), stacked, view.logX, view.logY, view.x]);
    if (this.plot && shape === this.shape) {
      this.plot.setData(this.#data());
      return false;
    }
    this.shape = shape;
    this.#build();
    return true;
  }

  /** Discards the plot's shape, so that `show` rebuilds it with the theme's colours. */
  invalidate() {
    this.shape = null;
  }

  resize() {
    const width = this.host.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  /** Shows or hides a line. */
  toggle(index, show) {
    for (const offset of [1, 2, 3]) this.plot.setSeries(3 * index + offset, { show });
  }

  #data() {
    const { x, lines, stacked, view } = this.shown;
    if (stacked) {
      const none = x.map(() => null);
      return [x, ...stack(lines).flatMap((sums) => [none, none, sums])];
    }
    const positive = (values) => (view.logY ? values.map((value) => (value > 0 ? value : null)) : values);
    const drawn = ({ most, least, mean, gap }) => [most, least, mean].map((values) => interrupted(positive(values), gap));
    return [x, ...lines.flatMap(drawn)];
  }

  #build() {
    this.plot?.destroy();
    const { lines, stacked, view } = this.shown;
    const style = getComputedStyle(document.documentElement);
    const token = (name) => style.getPropertyValue(name).trim();
    this.colours = lines.map((line) => token(line.token));
    const grid = { stroke: token("--grid"), width: 1 };
    const axis = { stroke: token("--muted"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const options = {
      width: this.host.clientWidth || 360,
      height: HEIGHT,
      legend: { show: false },
      cursor: {
        // The other charts follow the pointer, not its buttons: each would zoom by a scale of its own.
        sync: { key: "grove", scales: ["x", null], filters: { pub: (type) => FOLLOWED.has(type) } },
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        bind: { dblclick: () => () => this.actions.zoom(null, null) },
      },
      scales: {
        x: { time: false, distr: view.logX ? 3 : 1, range: () => this.#spanX() },
        y: view.logY ? { distr: 3 } : { range: (_, least, most) => this.#spanY(least, most) },
      },
      axes: [
        { ...axis, size: 26, gap: 4, space: 60, values: (_, ticks) => ticks.map((tick) => tickText(view.x, tick)) },
        { ...axis, size: widthOfLabels, gap: AXIS_GAP, values: (_, ticks) => ticks.map((tick) => this.actions.text(tick, 0)) },
      ],
      series: [{}, ...lines.flatMap((line, index) => this.#seriesOf(line, this.colours[index]))],
      bands: lines.flatMap((_, index) => this.#bandsOf(index, stacked)),
      hooks: {
        setCursor: [(plot) => this.actions.cursor(plot.cursor.idx ?? null)],
        setSelect: [(plot) => this.#selected(plot)],
        drawClear: [(plot) => this.#paintAlert(plot, token("--bad-soft"))],
      },
    };
    this.plot = new uPlot(options, this.#data(), this.host);
  }

  #seriesOf(line, colour) {
    const { x, stacked } = this.shown;
    const edge = { stroke: "transparent", width: 0, points: { show: false } };
    const mean = {
      stroke: colour,
      width: 1.6,
      dash: stacked ? [] : DASHES[line.dash % DASHES.length],
      fill: stacked ? `color-mix(in srgb, ${colour} 55%, transparent)` : undefined,
      points: {
        show: !stacked && x.length < FEW,
        // Of many points those are drawn to which no line leads.
        filter: (plot, index, show) => (show || stacked ? null : lonely(plot.data[index])),
        size: 5,
        fill: colour,
      },
    };
    return [edge, { ...edge }, mean];
  }

  #bandsOf(index, stacked) {
    if (stacked) return index ? [{ series: [3 * index + 3, 3 * index] }] : [];
    const fill = `color-mix(in srgb, ${this.colours[index]} 18%, transparent)`;
    return [{ series: [3 * index + 1, 3 * index + 2], fill }];
  }

  #spanX() {
    const { range, view, x } = this.shown;
    const { from, to, log } = range;
    // There are no points before the first one: on a log axis that may be most of the width.
    const first = view.from === null ? x[0] : from;
    const low = log ? Math.max(first, 1) : from;
    return to > low ? [low, to] : [low - 0.5, low + 0.5];
  }

  #spanY(least, most) {
    const { share, stacked } = this.shown;
    if (least === null || most === null) return [0, 1];
    if (stacked) return [0, share ? 1 : most * 1.08 || 1];
    const room = (most - least) * 0.08 || Math.abs(most) * 0.1 || 0.5;
    const low = least >= 0 && least - room < 0 ? 0 : least - room;
    // An interval may exceed the range of a share.
    return share ? [Math.max(0, low), Math.min(1.02, most + room)] : [low, most + room];
  }

  #paintAlert(plot, colour) {
    const rule = ALERTS[this.shown.id];
    if (!rule) return;
    const { left, top, width, height } = plot.bbox;
    const at = (value) => Math.min(Math.max(plot.valToPos(value, "y", true), top), top + height);
    plot.ctx.fillStyle = colour;
    if (rule.above !== undefined) plot.ctx.fillRect(left, top, width, at(rule.above) - top);
    if (rule.below !== undefined) plot.ctx.fillRect(left, at(rule.below), width, top + height - at(rule.below));
  }

  #selected(plot) {
    if (plot.select.width < 4) return;
    const [from, to] = [plot.select.left, plot.select.left + plot.select.width].map((at) => plot.posToVal(at, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.actions.zoom(from, to);
  }
}

/** Returns a short line as a chart draws it or, for a part of a stack, a patch of its colour. */
export function swatch(colour, dash, stacked) {
  const canvas = document.createElement("canvas");
  canvas.width = 36;
  canvas.height = 20;
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.strokeStyle = colour;
  context.fillStyle = colour;
  if (stacked) {
    context.fillRect(3, 0, 12, 10);
    return canvas;
  }
  context.lineWidth = 2;
  context.setLineDash(DASHES[dash % DASHES.length].map((part) => part * 0.8));
  context.moveTo(0, 5);
  context.lineTo(18, 5);
  context.stroke();
  return canvas;
}

/** Formats a position on the x axis. */
export function xText(axis, value) {
  if (value === null || value === undefined) return "";
  if (axis === "time") return duration(value);
  return Math.abs(value) < 1e5 ? String(Number(value.toFixed(2))) : number(value);
}

/** Formats a tick; steps, tokens and nodes have no fractions. */
function tickText(axis, tick) {
  return axis === "time" || Number.isInteger(tick) ? xText(axis, tick) : null;
}

/** Returns the pixels that the labels of an axis need. */
function widthOfLabels(plot, labels, index, round) {
  const axis = plot.axes[index];
  if (round > 1) return axis._size; // uPlot's own: another width would bring other labels
  plot.ctx.font = axis.font[0]; // in pixels of the device
  const widths = (labels ?? []).map((label) => plot.ctx.measureText(label ?? "").width / devicePixelRatio);
  return Math.ceil(Math.max(AXIS_WIDTH, AXIS_GAP + 4 + Math.max(0, ...widths)));
}
