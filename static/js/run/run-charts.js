/**
 * The charts of the run page: a selection, from the server's buckets, kept live by the stream.
 *
 * What a program logged by names of its own has a section of its own. Of the run of another program, a chart
 * without a number is left out, and that of tests, which only Grove's own nodes have.
 *
 * Invariant: everything shown was known at the event that the page shows. `show` is called on every
 * draw of the page; the server is queried when new numbers have arrived, or another event is shown,
 * one request at a time.
 *
 * Waits: for the server, without a deadline of its own; a failure is reported and retried.
 */

import { element, setText } from "../lib/dom.js";
import { loadError } from "../lib/load-error.js";
import { MetricBoard } from "../metrics/metric-board.js";
import { chartsFrom, isOwn } from "../metrics/metric-names.js";
import { isLogged } from "./logged-names.js";
import { readZoom, withZoom } from "../metrics/metric-view.js";

const CHART_IDS = ["validation.agent", "reward", "solved", "entropy", "kl", "share", "hacking", "no_program", "phase"];
const MOST_LOGGED = 120; // charts; all of them are on the page of charts
const PAUSE_MS = 700; // between two requests
const RETRY_MS = 3_000;
const VIEW = { x: "step", smooth: 0, logX: false, logY: false, band: "none" };

export class RunCharts {
  /**
   * @param run {id, url, agents, owners, figures, begun, tracked}; `moment()` returns the seq shown, null if live;
   *   `logged` is {section, charts, more}: elements of what a program logged.
   */
  constructor(host, run, moment, logged) {
    this.host = host;
    this.logged = logged;
    this.after = host.firstElementChild; // existing content stays behind the charts
    this.zoomed = readZoom(location.search);
    this.moment = moment;
    this.until = moment();
    this.board = new MetricBoard({
      runs: new Map([[run.id, run]]),
      view: () => ({ ...VIEW, ...this.zoomed }),
      until: () => this.until,
      zoom: (from, to) => this.zoom(from, to),
      onError: (error) => this.#onError(error),
    });
    this.run = run;
    this.loading = run.begun; // until the server's first response
    this.note = element("p", { class: "small charts-zoom", role: "status", hidden: true });
    host.before(this.note);
    this.#arrange();
    this.#showZoom();
    new ResizeObserver(() => this.board.resize()).observe(host);
  }

  /** @param version changes whenever the state has other numbers. */
  show(version) {
    this.version = `${this.moment() === null ? "now" : "then"} ${version}`;
    if (!this.requesting && !document.hidden && this.version !== this.drawn) this.#request();
  }

  zoom(from, to) {
    this.zoomed = { from, to };
    history.replaceState(null, "", withZoom(location, from, to));
    this.#showZoom();
    this.board.refresh(undefined, performance.now()).catch((error) => this.#onError(error));
  }

  themeChanged() {
    this.board.themeChanged();
  }

  async #request() {
    this.requesting = true;
    let wait = PAUSE_MS;
    const { version } = this;
    try {
      this.until = this.moment();
      const { isNew } = await this.board.poll();
      const all = this.loading;
      this.loading = false;
      this.#arrange();
      await this.board.refresh(all ? undefined : isNew);
      this.drawn = version;
      this.board.catchUp();
    } catch (error) {
      this.#onError(error);
      wait = RETRY_MS;
    }
    setTimeout(() => {
      this.requesting = false;
      if (this.version !== this.drawn && !document.hidden) this.#request();
    }, wait);
  }

  /** Arranges all charts in their order, including those without a number yet. */
  #arrange(emptyText = this.loading ? "Loading…" : undefined) {
    const available = new Map(chartsFrom([this.run]).map((chart) => [chart.id, chart]));
    const empty = new Map(chartsFrom([{ ...this.run, metrics: CHART_IDS.map((name) => ({ name })) }]).map((chart) => [chart.id, { ...chart, lines: [] }]));
    const isShown = this.run.tracked ? (id) => available.has(id) && id !== "hacking" : () => true;
    const own = [...available.keys()].filter((id) => isOwn(id, this.run.figures));
    const charts = [...CHART_IDS.filter(isShown), ...own].map((id) => ({ ...(available.get(id) ?? empty.get(id)), empty: emptyText }));
    const logged = [...available.values()].filter(({ id }) => this.#isOfProgram(id));
    this.board.arrange([...charts, ...logged.slice(0, MOST_LOGGED)], (root, { id }) => {
      if (!root.parentNode) (this.#isOfProgram(id) ? putInOrder(root, id, this.logged.charts) : this.#put(root, id));
    });
    if (logged.length) this.logged.section.hidden = false;
    this.logged.more.hidden = logged.length <= MOST_LOGGED;
    setText(this.logged.more, `${MOST_LOGGED} of ${logged.length} names; all of them are under All charts.`);
  }

  /** Inserts a card before those that come later in the order of charts; figures of methods are last. */
  #put(root, id) {
    const isOwnChart = (one) => isOwn(one ?? "", this.run.figures);
    const isLater = isOwnChart(id)
      ? () => false
      : (other) => isOwnChart(other) || CHART_IDS.indexOf(other) > CHART_IDS.indexOf(id);
    const next = [...this.host.children].find((one) => isLater(one.dataset.metric));
    this.host.insertBefore(root, next ?? this.after);
  }

  /** Returns whether a chart is of numbers that a program logged by names of its own. */
  #isOfProgram(id) {
    return isLogged(id) && !isOwn(id, this.run.figures);
  }

  #showZoom() {
    const { from, to } = this.zoomed;
    this.note.hidden = from === null;
    if (from === null) return;
    const whole = element("button", { class: "button", type: "button", onclick: () => this.zoom(null, null) }, "Reset zoom");
    const steps = element("span");
    setText(steps, `Charts show steps ${Math.ceil(from)} to ${Math.floor(to)}. `);
    this.note.replaceChildren(steps, whole);
  }

  #onError(error) {
    console.warn("grove: the charts cannot be drawn:", error.message);
    if (!this.loading) return;
    this.#arrange(`The charts could not be loaded. ${loadError(error).text}`);
    this.board.refresh().catch(() => {}); // empty charts make no requests
  }
}

/** Inserts a card among those of the other names, in alphabetical order. */
function putInOrder(root, id, host) {
  const after = [...host.children].find((one) => one.dataset.metric.localeCompare(id) > 0);
  host.insertBefore(root, after ?? null);
}
