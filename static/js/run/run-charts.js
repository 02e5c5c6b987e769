/**
 * The charts of the run page: the first ones to look at, from the server's buckets, live by the stream.
 *
 * Invariant: what is shown was known at the event that the page shows. `show` is told whenever the
 * page is drawn; the server is asked when numbers have come since, or another moment has others, one
 * question after the other.
 *
 * Waits: for the server, without a deadline of its own; a failure is told and tried again.
 */

import { element, setText } from "../lib/dom.js";
import { MetricBoard } from "../metrics/metric-board.js";
import { chartsFrom } from "../metrics/metric-names.js";
import { readZoom, withZoom } from "../metrics/metric-view.js";

const SHOWN = ["validation.agent", "reward", "solved", "entropy", "kl", "share", "phase"];
const PAUSE_MS = 700; // between two questions
const AGAIN_MS = 3_000;
const VIEW = { x: "step", smooth: 0, logX: false, logY: false, band: "none" };

export class RunCharts {
  /** @param run {id, url, agents, owners, begun}; `moment()` is the seq that the page shows, null if live. */
  constructor(host, run, moment) {
    this.host = host;
    this.after = host.firstElementChild; // what is there already stays behind the charts
    this.zoomed = readZoom(location.search);
    this.moment = moment;
    this.until = moment();
    this.board = new MetricBoard({
      runs: new Map([[run.id, run]]),
      view: () => ({ ...VIEW, ...this.zoomed }),
      until: () => this.until,
      zoom: (from, to) => this.zoom(from, to),
      onFault: (error) => this.#lost(error),
    });
    this.run = run;
    this.loading = run.begun; // until the server has said what there is
    this.note = element("p", { class: "small charts-zoom", role: "status", hidden: true });
    host.before(this.note);
    this.#arrange();
    this.#tellZoom();
    new ResizeObserver(() => this.board.resize()).observe(host);
  }

  /** @param version changes when a state tells other numbers. */
  show(version) {
    this.version = `${this.moment() === null ? "now" : "then"} ${version}`;
    if (!this.working && !document.hidden && this.version !== this.drawn) this.#work();
  }

  zoom(from, to) {
    this.zoomed = { from, to };
    history.replaceState(null, "", withZoom(location, from, to));
    this.#tellZoom();
    this.board.refresh(undefined, performance.now()).catch((error) => this.#lost(error));
  }

  themeChanged() {
    this.board.themeChanged();
  }

  async #work() {
    this.working = true;
    let wait = PAUSE_MS;
    const { version } = this;
    try {
      this.until = this.moment();
      const { isNew } = await this.board.ask();
      const all = this.loading;
      this.loading = false;
      this.#arrange();
      await this.board.refresh(all ? undefined : isNew);
      this.drawn = version;
      this.board.catchUp();
    } catch (error) {
      this.#lost(error);
      wait = AGAIN_MS;
    }
    setTimeout(() => {
      this.working = false;
      if (this.version !== this.drawn && !document.hidden) this.#work();
    }, wait);
  }

  /** All of them, in their order, also before there is a number. */
  #arrange(none = this.loading ? "Loading…" : undefined) {
    const found = new Map(chartsFrom([this.run]).map((chart) => [chart.id, chart]));
    const empty = new Map(chartsFrom([{ ...this.run, metrics: SHOWN.map((name) => ({ name })) }]).map((chart) => [chart.id, { ...chart, lines: [] }]));
    const charts = SHOWN.map((id) => ({ ...(found.get(id) ?? empty.get(id)), empty: none }));
    this.board.arrange(charts, (root) => root.parentNode ?? this.host.insertBefore(root, this.after));
  }

  #tellZoom() {
    const { from, to } = this.zoomed;
    this.note.hidden = from === null;
    if (from === null) return;
    const whole = element("button", { class: "button", type: "button", onclick: () => this.zoom(null, null) }, "Reset zoom");
    const steps = element("span");
    setText(steps, `Charts show steps ${Math.ceil(from)} to ${Math.floor(to)}. `);
    this.note.replaceChildren(steps, whole);
  }

  #lost(error) {
    console.warn("grove: the charts cannot be drawn:", error.message);
    if (!this.loading) return;
    this.#arrange(`The charts could not be loaded: ${error.message}. Retrying…`);
    this.board.refresh().catch(() => {}); // they have nothing to ask for
  }
}
