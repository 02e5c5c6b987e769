/**
 * The health warnings of a run: open ones in full, closed ones folded away.
 *
 * `healthOf` is pure. Everything shown is in the events: the page knows no rule.
 */

import { clock, count } from "../lib/format.js";
import { element } from "../lib/dom.js";

/** Returns {open, closed}: the warnings of a state, the newest first. */
export function healthOf(state) {
  const newestFirst = [...state.health].reverse();
  return {
    open: newestFirst.filter((one) => !one.closed),
    closed: newestFirst.filter((one) => one.closed),
  };
}

export class HealthBanner {
  /** @param host the element that holds it; `show(seq)` shows the page as of that event. */
  constructor(host, show) {
    this.host = host;
    this.show = show;
    this.version = "";
  }

  /** Draws the warnings of a state; unchanged ones stay, with what is unfolded. */
  draw(state) {
    const version = state.health.map((one) => `${one.seq}:${one.closed?.seq ?? ""}`).join();
    if (version === this.version) return;
    this.version = version;
    const { open, closed } = healthOf(state);
    this.host.hidden = !state.health.length;
    this.host.classList.toggle("warn", open.length > 0);
    this.host.replaceChildren(
      element(
        "div",
        {},
        open.length ? element("b", {}, count(open.length, "health warning")) : null,
        open.length ? element("ul", { class: "warnings" }, open.map((one) => this.#open(one))) : null,
        closed.length ? this.#closed(closed) : null,
      ),
    );
  }

  #open(one) {
    const since = element("span", { class: "muted small" }, "Since ", this.#step(one.since, one.since_time * 1000), ". ", this.#jump(one));
    return element(
      "li",
      {},
      element("div", {}, element("b", {}, one.title), one.agent ? [" ", element("span", { class: "tag" }, one.agent)] : null),
      element("div", {}, one.seen, " ", since),
      one.advice ? element("details", {}, element("summary", { class: "small" }, "What people change"), element("p", { class: "small" }, one.advice)) : null,
    );
  }

  #closed(closed) {
    const rows = closed.map((one) =>
      element(
        "li",
        { class: "small" },
        element("b", {}, one.title),
        one.agent ? [" ", element("span", { class: "tag" }, one.agent)] : null,
        ` ${one.seen} `,
        element("span", { class: "muted" }, "From ", this.#step(one.since, one.since_time * 1000), ", closed at ", this.#step(one.closed.step, one.closed.time), ". ", this.#jump(one)),
      ),
    );
    const summary = element("summary", { class: "small" }, count(closed.length, "closed health warning"));
    return element("details", {}, summary, element("ul", { class: "warnings" }, rows));
  }

  #step(step, time) {
    const date = new Date(time);
    return element("time", { datetime: date.toISOString(), title: date.toLocaleString() }, `step ${step}, ${clock(time)}`);
  }

  #jump(one) {
    const label = `Show the run when “${one.title}”${one.agent ? ` of ${one.agent}` : ""} opened`;
    return element("button", { class: "link", type: "button", "aria-label": label, onclick: () => this.show(one.seq) }, "Show that moment");
  }
}
