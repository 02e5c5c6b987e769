/** Prompt and tokens of a node, fetched when they are asked for: they are too big for the stream. */

import { element } from "./dom.js";
import { number } from "./format.js";

const KEPT = 60; // texts of nodes that are remembered
const LEVELS = [0.9, 0.6, 0.3, 0.1]; // probabilities between the five shades

/** Class of a token by how probable it was: 0 for the surest. Pure. */
export function shadeOf(logprob) {
  const p = Math.exp(logprob);
  const place = LEVELS.findIndex((least) => p >= least);
  return place < 0 ? LEVELS.length : place;
}

export class NodeWords {
  /** @param load (tree id, node id) -> promise of what the server tells of a node. */
  constructor(load) {
    this.load = load;
    this.known = new Map();
    this.open = new Set();
  }

  /** The two sections of a node; each fetches when it is opened. */
  sections(tree, node) {
    return [
      this.#section("prompt", "Prompt", tree, node, (text) => promptBox(text.prompt)),
      this.#section("tokens", "Tokens and log-probs", tree, node, (text) => tokenBox(text, node)),
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
        const text = await this.#text(tree.id, node.id);
        const none = "This log does not hold what passed between the loop and the agent.";
        body.replaceChildren(text ? build(text) : element("p", { class: "muted small" }, none));
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

  async #text(tree, node) {
    const key = `${tree}/${node}`;
    if (!this.known.has(key)) {
      const { text } = await this.load(tree, node);
      this.known.set(key, text ?? null);
      if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value);
    }
    return this.known.get(key);
  }
}

function promptBox(prompt) {
  return element("pre", { class: "code prompt", tabindex: 0 }, prompt);
}

function tokenBox({ tokens, logprobs }, node) {
  const idle = "Point at a token. The darker, the less probable it was.";
  const read = element("p", { class: "small muted token-read" }, idle);
  const spans = tokens.map((token, place) => {
    const text = token.replaceAll("\n", "↵\n");
    return element("span", { class: `token p${shadeOf(logprobs[place])}`, "data-place": place }, text);
  });
  const box = element("pre", { class: "code tokens", tabindex: 0 }, spans);
  box.addEventListener("pointerover", ({ target }) => {
    const place = Number(target.dataset?.place ?? -1);
    if (place >= 0) read.textContent = tokenText(tokens, logprobs, place);
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
    read.textContent = tokenText(tokens, logprobs, place);
    event.preventDefault();
  });
  const cut = node.tokens > tokens.length ? `The first ${tokens.length} of ${node.tokens} tokens. ` : "";
  return element("div", {}, read, box, cut ? element("p", { class: "small muted" }, cut) : "");
}

function tokenText(tokens, logprobs, place) {
  const p = Math.exp(logprobs[place]);
  const shown = JSON.stringify(tokens[place]);
  return `${place + 1} of ${tokens.length}: ${shown}, log-prob ${number(logprobs[place])}, p = ${p.toPrecision(2)}`;
}
