/** Prompt and tokens of a node, fetched on request: they are too big for the stream. */

import { element } from "../lib/dom.js";
import { bounds, columnOf, COLUMNS, readOf } from "./token-figures.js";

const KEPT = 60; // cached texts of nodes

export class NodeWords {
  /** @param load (tree id, node id) -> promise of the node's {text, learned} from the server. */
  constructor(load) {
    this.load = load;
    this.known = new Map();
    this.open = new Set();
  }

  /** Returns the two sections of a node; each fetches when it is opened. */
  sections(tree, node) {
    return [
      this.#section("prompt", "Prompt", tree, node, (text) => promptBox(text.prompt)),
      this.#section("tokens", "Tokens", tree, node, (text, learned) => tokenBox(text, learned, node)),
    ];
  }

  #section(name, title, tree, node, build) {
    const body = element("div", { class: "words" });
    const details = element(
      "details",
      { "data-words": name },
      element("summary", {}, element("h3", {}, title)),
      body,
    );
    const fill = async () => {
      if (body.childElementCount) return;
      body.replaceChildren(element("p", { class: "muted small" }, "Loading…"));
      try {
        const { text, learned } = await this.#told(tree, node);
        const none = "This log does not hold what passed between the loop and the agent.";
        body.replaceChildren(text ? build(text, learned) : element("p", { class: "muted small" }, none));
      } catch (error) {
        const again = element("button", { type: "button", class: "button", onclick: () => {
          body.replaceChildren();
          fill();
        } }, "Try again");
        const why = element("p", { class: "small" }, `It could not be loaded (${error.message}). `);
        body.replaceChildren(why, again);
      }
    };
    details.addEventListener("toggle", () => {
      if (details.open) {
        this.open.add(name);
        fill();
      } else this.open.delete(name);
    });
    details.open = this.open.has(name);
    return element("section", {}, details);
  }

  async #told(tree, node) {
    // The record of an update is emitted later than the node's text.
    const key = `${tree.id}/${node.id}/${tree.closed}`;
    const known = this.known.get(key);
    if (known && (known.learned || !tree.closed)) return known;
    const { text = null, learned = null } = await this.load(tree.id, node.id);
    this.known.set(key, { text, learned });
    if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value);
    return { text, learned };
  }
}

function promptBox(prompt) {
  return element("pre", { class: "code prompt", tabindex: 0 }, prompt);
}

function tokenBox({ tokens, logprobs }, learned, node) {
  const figures = { tokens, logprobs, entropy: learned?.entropy ?? [], ratio: learned?.ratio ?? [] };
  const idle = "Point at a token, or walk with the arrow keys.";
  const read = element("p", { class: "small muted token-read" }, idle);
  const spans = tokens.map((token, place) =>
    element("span", { class: "token", "data-place": place }, token.replaceAll("\n", "↵\n")),
  );
  const box = element("pre", { class: "code tokens", tabindex: 0, "aria-label": "Tokens" }, spans);
  box.addEventListener("pointerover", ({ target }) => {
    const place = Number(target.dataset?.place ?? -1);
    if (place >= 0) read.textContent = readOf(figures, place);
  });
  box.addEventListener("pointerleave", () => {
    read.textContent = idle;
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const now = Number(box.dataset.at ?? (step > 0 ? -1 : tokens.length));
    const place = Math.max(0, Math.min(tokens.length - 1, now + step));
    box.dataset.at = place;
    for (const span of spans) span.classList.toggle("at", span === spans[place]);
    read.textContent = readOf(figures, place);
    event.preventDefault();
  });
  const cut = node.tokens > tokens.length ? `The first ${tokens.length} of ${node.tokens} tokens. ` : "";
  const about = learned
    ? `Entropy and ratio are those of the update of ${learned.agent} at step ${learned.step}.`
    : "Entropy and ratio are told once an update learned from this node.";
  return element("div", {}, shadeChoice(figures, spans, learned), read, box, element("p", { class: "small muted" }, cut + about));
}

/** Builds the choice of what shades the tokens: one of the available figures. */
function shadeChoice(figures, spans, learned) {
  const hint = element("span", { class: "small muted" });
  const buttons = COLUMNS.filter(({ name }) => learned || name === "logprobs").map((column) =>
    element("button", { type: "button", value: column.name, "aria-pressed": "false" }, column.label),
  );
  const choose = (name) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === name));
    const { shade, hint: told } = columnOf(name);
    spans.forEach((span, place) => {
      const value = figures[name][place];
      span.className = `token p${value === undefined ? 0 : shade(value)}`;
    });
    hint.textContent = `${told} ${bounds(figures[name])}`;
  };
  for (const button of buttons) button.addEventListener("click", () => choose(button.value));
  choose("logprobs");
  return element("div", { class: "token-shades" }, element("span", { class: "segments", role: "group", "aria-label": "Shade by" }, buttons), hint);
}
