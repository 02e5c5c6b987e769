/** The settings that another program gave for its run, and its summary. */

import { element } from "../lib/dom.js";
import { leaves } from "./logged-names.js";

const SHOWN = 40;

export class ProgramCard {
  /** @param config the program's settings, as they were when the page was loaded. */
  constructor(host, config) {
    Object.assign(this, { host, config });
  }

  /** Draws settings and summary. */
  draw(summary = {}) {
    const version = JSON.stringify([this.config, summary]);
    if (version === this.version) return;
    this.version = version;
    const settings = leaves(this.config);
    const own = leaves(summary);
    const parts = [settings.length ? listOf(settings) : element("p", { class: "muted" }, "The program gave no settings.")];
    if (own.length) parts.push(element("h3", {}, "Summary"), listOf(own));
    this.host.replaceChildren(...parts);
  }
}

function listOf(pairs) {
  const items = pairs.map(([path, text]) => element("div", { class: "program-row" }, element("dt", {}, path), element("dd", {}, text)));
  const list = element("dl", { class: "program-list" }, items.slice(0, SHOWN));
  if (items.length <= SHOWN) return list;
  const rest = element("dl", { class: "program-list" }, items.slice(SHOWN));
  return element("div", {}, list, element("details", {}, element("summary", { class: "small" }, `${items.length - SHOWN} more`), rest));
}
