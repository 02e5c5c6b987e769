/**
 * The charts of a page, of one run or of several: cards over the series that the server has.
 *
 * Invariants:
 * - `poll` fetches names, lengths and newest points of the series; only cards on the screen request
 *   buckets, and only when some of their data is new. The others catch up when they come into view.
 * - With a seq from `until()`, everything shown was known at that event of the log.
 */

import { MetricCard } from "./metric-card.js";
import { browser } from "../stream/stream.js";

const AHEAD = { rootMargin: "250px" };

export class MetricBoard {
  /**
   * @param options {runs: Map(id -> {id, url, agents, ...}), view(), zoom(from, to), until(), onError(error)}:
   *   `view` returns what `readView` does; `until` returns a seq or null.
   */
  constructor(options) {
    Object.assign(this, { until: () => null }, options);
    for (const run of this.runs.values()) run.metrics ??= [];
    this.cards = new Map();
    const { runs, view, zoom } = this;
    this.cardContext = { runs, view, zoom, load: (line, range) => this.#load(line, range), extent: (chart) => this.#extent(chart) };
    this.observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const card = this.cards.get(target.dataset.metric);
        if (!card) continue;
        card.visible = isIntersecting;
        if (isIntersecting && card.stale !== false) card.refresh().catch(this.onError);
      }
    }, AHEAD);
  }

  /** Requests the series of each run; returns {any, isNew(chart)}, which say what is new. */
  async poll() {
    const fresh = new Set();
    await Promise.all([...this.runs.values()].map(async (run) => {
      const metrics = await this.#metricsOf(run);
      const before = new Map(run.metrics.map((one) => [one.name, versionOf(one)]));
      for (const one of metrics) if (before.get(one.name) !== versionOf(one)) fresh.add(`${run.id} ${one.name}`);
      const names = new Set(metrics.map((one) => one.name));
      for (const name of before.keys()) if (!names.has(name)) fresh.add(`${run.id} ${name}`);
      run.metrics = metrics;
    }));
    const isNew = ({ lines }) => lines.some((line) => fresh.has(`${line.run} ${line.metric}`));
    return { any: fresh.size > 0, isNew };
  }

  /** Creates missing cards and removes the others; `put(root, chart)` inserts each into the page. */
  arrange(charts, put) {
    const ids = new Set(charts.map((chart) => chart.id));
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      this.observer.unobserve(card.root);
      card.root.remove();
      this.cards.delete(id);
    }
    for (const chart of charts) {
      let card = this.cards.get(chart.id);
      if (card) card.setChart(chart);
      else {
        card = new MetricCard(chart, this.cardContext);
        this.cards.set(chart.id, card);
        this.observer.observe(card.root);
      }
      put(card.root, chart);
    }
  }

  /** Draws all cards again, or those for whose chart `which` is true or whose lines changed; cards out
   *  of sight are drawn when they come into view. */
  refresh(which = () => true, since = null) {
    const cards = [...this.cards.values()].filter((card) => card.changed || which(card.chart));
    return Promise.all(cards.map((card) => card.refresh(since)));
  }

  /** Retries cards that could not be drawn. */
  catchUp() {
    for (const card of this.cards.values()) if (card.visible && card.stale) card.refresh().catch(this.onError);
  }

  resize() {
    this.cards.forEach((card) => card.resize());
  }

  themeChanged() {
    Promise.all([...this.cards.values()].map((card) => card.rebuild())).catch(this.onError);
  }

  async #metricsOf(run) {
    const metrics = [];
    const fields = new URLSearchParams({ limit: 200 });
    if (this.until() !== null) fields.set("until", this.until());
    let next = null;
    do {
      const response = await browser.load(`${run.url}?${fields}`);
      metrics.push(...response.metrics);
      run.state = response.state;
      next = response.next;
      fields.set("cursor", next);
    } while (next !== null);
    return metrics;
  }

  #load({ run, metric }, { x, from, to, points, log }) {
    const fields = new URLSearchParams({ x, from, to, points, scale: log ? "log" : "linear" });
    if (this.until() !== null) fields.set("until", this.until());
    return browser.load(`${this.runs.get(run).url}/${encodeURIComponent(metric)}?${fields}`);
  }

  #extent({ lines }) {
    const { x } = this.view();
    const lastOf = ({ run, metric }) => this.runs.get(run).metrics.find((one) => one.name === metric)?.last;
    return [0, Math.max(1, ...lines.map((line) => lastOf(line)?.[x] ?? 0))];
  }
}

/** Returns what identifies a series' state: a resumed run may record as many points again. */
function versionOf({ points, last }) {
  return [points, last.step, last.time, last.value].join();
}
