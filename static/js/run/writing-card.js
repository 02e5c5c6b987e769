/** The card of a search's nodes that are being written: the text of each, as it grows. */

import { element, setText } from "../lib/dom.js";
import { draftNote } from "./drafts.js";

export class WritingCard {
  /** @param host the card's element; `streams(agent)`: whether its drafts are known; `open(tree, node)`. */
  constructor(host, { streams, open }) {
    Object.assign(this, { host, streams, open });
    this.rows = new Map(); // "tree/node" -> {root, note, text}
  }

  /** @param rows as `Drafts.inFlight` returns them; none hides the card. `quiet` as of `draftNote`. */
  show(rows, quiet) {
    this.host.hidden = !rows.length;
    const keys = new Set(rows.map(({ tree, node }) => `${tree.id}/${node.id}`));
    for (const [key, { root }] of this.rows) {
      if (keys.has(key)) continue;
      root.remove();
      this.rows.delete(key);
    }
    for (const { tree, node, draft } of rows) {
      const key = `${tree.id}/${node.id}`;
      if (!this.rows.has(key)) this.#add(key, tree, node);
      const { note, text } = this.rows.get(key);
      setText(note, draftNote(draft, this.streams(node.agent), quiet));
      text.hidden = !draft;
      if (draft) setDraft(text, draft.text);
    }
  }

  #add(key, tree, node) {
    const title = element("button", { type: "button", class: "link", onclick: () => this.open(tree, node) }, `Node ${node.id} by ${node.agent}`);
    const note = element("span", { class: "muted small" });
    const text = element("pre", { class: "code draft", tabindex: 0, "aria-label": `Text of node ${node.id} so far` });
    const root = element("section", { class: "writing" }, element("p", {}, title, " ", note), text);
    this.rows.set(key, { root, note, text });
    this.host.append(root);
  }
}

/** Replaces a draft's text; a box that shows its end keeps showing it. */
export function setDraft(box, text) {
  const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  setText(box, text);
  if (atEnd) box.scrollTop = box.scrollHeight;
}
