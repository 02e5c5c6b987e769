/** Prompt and tokens of a node, fetched on request: they are too big for the stream. */

import { element } from "../lib/dom.js";
import { errorText } from "../lib/load-error.js";
import { bounds, columnOf, COLUMNS, readOf } from "./token-figures.js";

const MAX_CACHED = 60; // cached texts of nodes

export class NodeText {
  /** @param load (tree id, node id) -> promise of the node's {text, learned} from the server. */
  constructor(load) {
    this.load = load;
    this.cache = new Map();
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
        const { text, learned } = await this.#fetch(tree, node);
        const none = "This log does not record prompts and tokens.";
        body.replaceChildren(text ? build(text, learned) : element("p", { class: "muted small" }, none));
      } catch (error) {
        const again = element("button", { type: "button", class: "button", onclick: () => {
          body.replaceChildren();
          fill();
        } }, "Try again");
        const why = element("p", { class: "small" }, `Could not be loaded. ${errorText(error.status)} `);
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

  async #fetch(tree, node) {
    // The record of an update is emitted later than the node's text.
    const key = `${tree.id}/${node.id}/${tree.closed}`;
    const cached = this.cache.get(key);
    if (cached && (cached.learned || !tree.closed)) return cached;
    const { text = null, learned = null } = await this.load(tree.id, node.id);
    this.cache.set(key, { text, learned });
    if (this.cache.size > MAX_CACHED) this.cache.delete(this.cache.keys().next().value);
    return { text, learned };
  }
}

function promptBox(prompt) {
  return element("pre", { class: "code prompt", tabindex: 0 }, prompt);
}

function tokenBox({ tokens, logprobs }, learned, node) {
  const figures = { tokens, logprobs, entropy: learned?.entropy ?? [], ratio: learned?.ratio ?? [] };
  const idle = "Point at a token, or use the arrow keys.";
  const readout = element("p", { class: "small muted token-read" }, idle);
  const spans = tokens.map((token, index) =>
    element("span", { class: "token", "data-index": index }, token.replaceAll("\n", "↵\n")),
  );
  const box = element("pre", { class: "code tokens", tabindex: 0, "aria-label": "Tokens" }, spans);
  box.addEventListener("pointerover", ({ target }) => {
    const index = Number(target.dataset?.index ?? -1);
    if (index >= 0) readout.textContent = readOf(figures, index);
  });
  box.addEventListener("pointerleave", () => {
    readout.textContent = idle;
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const now = Number(box.dataset.at ?? (step > 0 ? -1 : tokens.length));
    const index = Math.max(0, Math.min(tokens.length - 1, now + step));
    box.dataset.at = index;
    for (const span of spans) span.classList.toggle("at", span === spans[index]);
    readout.textContent = readOf(figures, index);
    event.preventDefault();
  });
  const cut = node.tokens > tokens.length ? `The first ${tokens.length} of ${node.tokens} tokens. ` : "";
  const note = learned
    ? `Entropy and ratio are from the update of ${learned.agent} at step ${learned.step}.`
    : "Entropy and ratio are available after an update has used this node.";
  return element("div", {}, shadeChoice(figures, spans, learned), readout, box, element("p", { class: "small muted" }, cut + note));
}

/** Builds the choice of what shades the tokens: one of the available figures. */
function shadeChoice(figures, spans, learned) {
  const hint = element("span", { class: "small muted" });
  const buttons = COLUMNS.filter(({ name }) => learned || name === "logprobs").map((column) =>
    element("button", { type: "button", value: column.name, "aria-pressed": "false" }, column.label),
  );
  const choose = (name) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === name));
    const { shade, hint: description } = columnOf(name);
    spans.forEach((span, index) => {
      const value = figures[name][index];
      span.className = `token p${value === undefined || value === null ? 0 : shade(value)}`;
    });
    hint.textContent = `${description} ${bounds(figures[name])}`;
  };
  for (const button of buttons) button.addEventListener("click", () => choose(button.value));
  choose("logprobs");
  return element("div", { class: "token-shades" }, element("span", { class: "segments", role: "group", "aria-label": "Shade by" }, buttons), hint);
}
