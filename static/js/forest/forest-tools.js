/** The controls above the trees: filters, the meaning of colours, and the view of one tree. */

import { element } from "../lib/dom.js";
import { hasFilters, readFilters, SCORES } from "../run/filters.js";
import { count, words } from "../lib/format.js";

const TYPING_MS = 150;
const MENU = ["agent", "verdict", "score", "depth", "step"];

export class ForestTools {
  /**
   * @param parts elements by name; `actions` are {filter(filters), colour(name), zoom(factor),
   *   fit(), follow(on), list(on)}.
   */
  constructor(parts, actions, page) {
    Object.assign(this, parts);
    this.actions = actions;
    this.filters = readFilters(new URLSearchParams());
    fill(this.agent, page.agents.map(({ name }) => [name, name]));
    fill(this.verdict, page.verdicts.map(({ value, label }) => [value, label]));
    fill(this.score, Object.entries(SCORES).map(([value, label]) => [value, label]));
    this.#listen();
  }

  /** Sets the controls to the filters of an address. */
  set(filters) {
    this.filters = { ...filters };
    for (const [name, value] of Object.entries(filters)) {
      if (this[name].value !== value) this[name].value = value;
    }
  }

  /**
   * @param matches {trees, nodes} that match, or null without a search; `of` {trees, nodes} in
   *   total.
   */
  show(matches, total, focused) {
    const isFiltered = hasFilters(this.filters);
    this.clear.hidden = !isFiltered;
    const text = isFiltered && matches
      ? `${matches.nodes} of ${count(total.nodes, "node")} in ${matches.trees} of ${count(total.trees, "tree")}`
      : "";
    if (this.matchCount.textContent !== text) this.matchCount.textContent = text;
    this.view.hidden = !focused;
    const set = MENU.filter((name) => this.filters[name]).length;
    const label = set ? `Filters (${set})` : "Filters";
    if (this.menuLabel.textContent !== label) this.menuLabel.textContent = label;
  }

  #listen() {
    const changed = () => {
      this.filters = Object.fromEntries(Object.keys(this.filters).map((name) => [name, this[name].value]));
      this.actions.filter(this.filters);
    };
    for (const name of MENU) this[name].addEventListener("change", changed);
    this.q.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(changed, TYPING_MS);
    });
    this.clear.addEventListener("click", () => {
      this.set(readFilters(new URLSearchParams()));
      this.actions.filter(this.filters);
      this.q.focus();
    });
    pressed(this.colour, (button) => this.actions.colour(button.value));
    this.zoomIn.addEventListener("click", () => this.actions.zoom(1.5));
    this.zoomOut.addEventListener("click", () => this.actions.zoom(1 / 1.5));
    this.fitAll.addEventListener("click", () => this.actions.fit());
    toggle(this.follow, (on) => this.actions.follow(on));
    toggle(this.list, (on) => this.actions.list(on));
  }
}

function fill(select, options) {
  select.append(...options.map(([value, label]) => element("option", { value }, words(label))));
}

function toggle(button, action) {
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    action(on);
  });
}

/** Makes exactly one of a group of buttons pressed. */
function pressed(group, action) {
  group.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    for (const one of group.querySelectorAll("button")) {
      one.setAttribute("aria-pressed", String(one === button));
    }
    action(button);
  });
}
