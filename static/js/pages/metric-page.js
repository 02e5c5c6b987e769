/**
 * A page of charts of some runs: its controls, its requests to the server, and its freshness.
 *
 * The address holds the view. Names and lengths of series are polled every few seconds; a chart
 * requests its buckets when some of its data is new, and only while it is on the screen.
 */

import { element, setText } from "../lib/dom.js";
import { clock } from "../lib/format.js";
import { loadError } from "../lib/load-error.js";
import { MetricBoard } from "../metrics/metric-board.js";
import { readView, writeView } from "../metrics/metric-view.js";
import { hasEnded } from "../stream/stream.js";

const EVERY_MS = 3_000;
const LONGEST_WAIT_MS = 30_000;
const CHOICES = ["x", "band"];
const LOGS = ["logX", "logY"];
const VALUES = [...CHOICES, "q", "smooth"];
const ENDS = ["from", "to"]; // of the range, for users who do not drag

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const control = (name) => document.querySelector(`[data-control="${name}"]`);

export class MetricPage {
  /**
   * @param runs as in `MetricBoard`; `arrange(board, runs, view)` inserts the charts into the page;
   *   `onData()`, if given, is awaited when the server reported new data; `onStates(runs)` is called
   *   after each response; `freshText` is the label of an up-to-date page whose runs may continue.
   */
  constructor(runs, { arrange, onData, onStates, freshText = "live" }) {
    this.runs = new Map(runs.map((run) => [run.id, run]));
    Object.assign(this, { onData, onStates, freshText });
    this.view = readView(location.search);
    this.lostSince = null;
    this.board = new MetricBoard({
      runs: this.runs,
      view: () => this.view,
      zoom: (from, to) => this.#zoom(from, to),
      onError: (error) => this.#onError(error),
    });
    this.loading = element("p", { class: "card card-body muted", role: "status", "data-part": "loading" }, "Loading charts…");
    this.isLoaded = false;
    part("charts").before(this.loading);
    part("charts").setAttribute("aria-busy", "true");
    const retry = { class: "button", type: "button", "data-part": "retry", onclick: () => this.#attempt() };
    part("connection").append(element("button", retry, "Try again"));
    this.arrange = () => arrange(this.board, [...this.runs.values()], this.view);
    this.#listen();
    this.#showControls();
    this.#tick();
  }

  #listen() {
    for (const name of CHOICES) control(name).addEventListener("change", ({ target }) => this.#change({ [name]: target.value }));
    for (const name of LOGS) control(name).addEventListener("click", () => this.#change({ [name]: !this.view[name] }));
    control("q")?.addEventListener("input", ({ target }) => this.#change({ q: target.value }));
    control("smooth").addEventListener("input", ({ target }) => this.#change({ smooth: Number(target.value) }));
    control("whole").addEventListener("click", () => this.#zoom(null, null));
    for (const end of ENDS) control(end).addEventListener("change", () => this.#zoomTyped());
    new ResizeObserver(() => this.board.resize()).observe(part("charts"));
    addEventListener("themechange", () => this.board.themeChanged());
    addEventListener("popstate", () => this.#change(readView(location.search)));
  }

  async #attempt() {
    try {
      const { any, isNew } = await this.board.poll();
      this.#loaded();
      if (any) {
        this.arrange();
        await this.onData?.();
        await this.board.refresh(isNew);
      } else if (!this.board.cards.size) this.arrange();
      this.#connected();
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Marks the page as loaded: the names of all charts are known; each loads its own buckets. */
  #loaded() {
    this.isLoaded = true;
    this.loading.remove();
    part("charts").setAttribute("aria-busy", "false");
  }

  async #tick() {
    if (!document.hidden && !this.isFinal) await this.#attempt();
    const late = this.lostSince ? Date.now() - this.lostSince : 0;
    setTimeout(() => this.#tick(), Math.min(LONGEST_WAIT_MS, EVERY_MS + late / 4));
  }

  #onError(error) {
    console.warn("grove charts:", error.message);
    this.lostSince ??= Date.now();
    const { text, final } = loadError(error);
    this.isFinal = final;
    this.loading.hidden = true;
    part("charts").setAttribute("aria-busy", "false");
    part("connection").hidden = false;
    setText(part("connectionTitle"), this.isLoaded ? "Connection lost." : "The charts could not be loaded.");
    setText(part("connectionText"), this.isLoaded ? `Showing the state at ${clock(this.lostSince)}. ${text}` : text);
    showState("stale", final ? "not available" : "reconnecting");
  }

  #connected() {
    this.lostSince = null;
    this.isFinal = false;
    part("connection").hidden = true;
    this.#showFresh();
    this.board.catchUp();
  }

  #showFresh() {
    const runs = [...this.runs.values()];
    const ended = runs.every(({ state }) => hasEnded(state));
    showState(ended ? "ended" : "live", ended ? "ended" : this.freshText);
    this.onStates?.(runs);
  }

  #zoom(from, to) {
    this.#change({ from, to }, performance.now());
  }

  /** Zooms to the typed range, once it is valid. */
  #zoomTyped() {
    const [from, to] = ENDS.map((end) => control(end).valueAsNumber);
    control("to").setCustomValidity(from >= to ? "Enter a number greater than the start." : "");
    if (from < to) this.#zoom(from, to);
    else if (ENDS.every((end) => control(end).value === "")) this.#zoom(null, null);
  }

  #change(changes, since = null) {
    // A range of steps means nothing on another axis.
    if (changes.x && changes.x !== this.view.x) changes = { ...changes, from: null, to: null };
    this.view = { ...this.view, ...changes };
    history.replaceState(null, "", writeView(location.search, this.view));
    this.#showControls();
    if ("q" in changes) this.arrange();
    this.board.refresh(undefined, since).catch((error) => this.#onError(error));
  }

  #showControls() {
    const { view } = this;
    for (const name of VALUES) {
      const field = control(name);
      if (field && field.value !== String(view[name])) field.value = view[name];
    }
    for (const end of ENDS) {
      const field = control(end);
      const value = view[end] === null ? "" : String(Number(view[end].toPrecision(6)));
      if (field !== document.activeElement) field.value = value;
    }
    for (const name of LOGS) control(name).setAttribute("aria-pressed", String(view[name]));
    control("whole").hidden = view.from === null;
    control("band").closest("label").hidden = this.runs.size < 2;
    setText(control("smoothed"), view.smooth ? view.smooth.toFixed(2) : "off");
  }
}

function showState(kind, text) {
  part("stream").dataset.kind = kind;
  setText(part("stream"), text);
}
