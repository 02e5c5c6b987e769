/**
 * Texts, tables, histograms and images that a program logged: the newest of each name, with the earlier ones
 * on request, and the numbers that were not finite.
 *
 * Invariant: a card is replaced only when its newest value changed, and stays where its reader is:
 * an earlier value that was requested remains until "Newest" is pressed.
 */

import { element, setText } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { loadError } from "../lib/load-error.js";
import { histogramOf } from "../metrics/histogram.js";
import { browser } from "../stream/stream.js";
import { textOf } from "./logged-names.js";

const SHOWN_ROWS = 50;
const DRAW = { texts: drawText, tables: drawTable, histograms: histogramOf, images: drawImage };
const WORDS = { nan: "NaN", inf: "infinite", "-inf": "minus infinite" };

export class LoggedValues {
  /** @param host the element of the cards, `notes` that of the notes; `url` serves earlier values,
   *  undefined if the reader may not see them. */
  constructor(host, notes, url) {
    Object.assign(this, { host, notes, url });
    this.cards = new Map();
  }

  /** Draws the state's `logged`; returns whether there is anything. */
  draw(logged) {
    const present = new Set();
    for (const kind of Object.keys(DRAW)) {
      for (const [name, newest] of logged[kind]) {
        const key = `${kind} ${name}`;
        present.add(key);
        if (!this.cards.has(key)) this.#add(key, new ValueCard(kind, name, this.url));
        this.cards.get(key).show(newest);
      }
    }
    for (const [key, card] of this.cards) {
      if (present.has(key)) continue;
      card.root.remove();
      this.cards.delete(key);
    }
    this.#drawNotes(logged.nonfinite);
    return present.size + logged.nonfinite.size > 0;
  }

  #add(key, card) {
    const after = [...this.cards].filter(([other]) => other > key).sort(([a], [b]) => (a < b ? -1 : 1))[0];
    this.host.insertBefore(card.root, after?.[1].root ?? null);
    this.cards.set(key, card);
  }

  #drawNotes(nonfinite) {
    const texts = [...nonfinite].map(([name, { value, step }]) => `${name} was ${WORDS[value]} at step ${step}`);
    if (this.notes.dataset.version === texts.join()) return;
    this.notes.dataset.version = texts.join();
    const list = element("ul", { class: "warnings" }, texts.map((text) => element("li", {}, text)));
    const note = element("div", { class: "note warn", role: "status" }, element("div", {}, element("b", {}, "Numbers that are not finite"), list));
    this.notes.replaceChildren(...(texts.length ? [note] : []));
  }
}

class ValueCard {
  constructor(kind, name, url) {
    Object.assign(this, { kind, name, url, newest: null, earlier: null });
    this.at = element("span", { class: "small at" });
    this.body = element("div", { class: "logged-body" });
    this.back = element("button", { class: "button", type: "button", onclick: () => this.#step() }, "Earlier");
    this.forward = element("button", { class: "button", type: "button", hidden: true, onclick: () => this.#toNewest() }, "Newest");
    this.message = element("span", { class: "small muted", role: "status" });
    const tools = url ? element("div", { class: "logged-tools" }, this.back, this.forward, this.message) : null;
    this.root = element(
      "section",
      { class: "card chart logged-value", "data-logged": `${kind} ${name}`, "aria-label": name },
      element("div", { class: "chart-head" }, element("h3", {}, name), this.at),
      this.body,
      tools,
    );
  }

  show(newest) {
    if (this.newest?.seq === newest.seq) return;
    this.newest = newest;
    if (!this.earlier) this.#draw(newest);
  }

  #draw({ value, step }) {
    setText(this.at, `step ${step}`);
    this.body.replaceChildren(...DRAW[this.kind](value, this.name));
  }

  /** Shows the value before the one that is shown. */
  async #step() {
    const before = (this.earlier ?? this.newest).seq;
    const fields = new URLSearchParams({ kind: this.kind, name: this.name, cursor: before, limit: 1 });
    this.back.disabled = true;
    setText(this.message, "");
    try {
      const { values } = await browser.load(`${this.url}?${fields}`);
      if (values.length) {
        this.earlier = values[0];
        this.forward.hidden = false;
        this.#draw(values[0]);
        this.back.disabled = false;
      } else {
        setText(this.message, "This is the first one.");
      }
    } catch (error) {
      this.back.disabled = false;
      setText(this.message, loadError(error).text);
    }
  }

  #toNewest() {
    this.earlier = null;
    this.forward.hidden = true;
    this.back.disabled = false;
    setText(this.message, "");
    this.#draw(this.newest);
    this.back.focus();
  }
}

function drawText(text, name) {
  return [element("pre", { class: "prompt", tabindex: 0, role: "group", "aria-label": name }, text)];
}

function drawTable({ columns, rows, left_out: leftOut = 0 }, name) {
  const body = element("tbody", {}, rows.slice(0, SHOWN_ROWS).map(rowOf));
  const head = element("thead", {}, element("tr", {}, columns.map((text) => element("th", { scope: "col" }, text))));
  const wrap = element("div", { class: "table-wrap logged-table", tabindex: 0, role: "group", "aria-label": name }, element("table", { class: "small-table" }, head, body));
  const parts = [wrap];
  if (rows.length > SHOWN_ROWS) {
    const more = element("button", { class: "button", type: "button" }, `Show all ${count(rows.length, "row")}`);
    more.addEventListener("click", () => {
      body.append(...rows.slice(SHOWN_ROWS).map(rowOf));
      more.remove();
    });
    parts.push(more);
  }
  if (leftOut) parts.push(element("p", { class: "small muted" }, `${count(leftOut, "more row")} not kept.`));
  return parts;
}

function drawImage({ format, data, caption = "" }, name) {
  const picture = element("img", { class: "logged-image", alt: caption || name, src: `data:image/${format};base64,${data}` });
  return [picture, caption ? element("p", { class: "small muted" }, caption) : ""];
}

function rowOf(cells) {
  return element("tr", {}, cells.map((cell) => element("td", typeof cell === "number" ? { class: "right" } : {}, typeof cell === "number" ? number(cell) : textOf(cell))));
}
