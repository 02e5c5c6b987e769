/**
 * The forest as a list, on the same store as the canvas: for screen readers and for the keyboard.
 *
 * The list is a tree view (WAI-ARIA): arrows move, Right opens a tree, Left leads up, Enter shows.
 * Of a long list only the rows around the active one are in the document; `aria-setsize` and
 * `aria-posinset` refer to the whole list.
 */

import { element } from "../lib/dom.js";
import { describe, describeTree, defaultNode } from "./describe.js";

const MOST_ROWS = 240;
const PAUSE_MS = 1000; // minimum between two redraws of a long list while events arrive
const PAUSE_FACTOR = 12; // minimum pause, as a multiple of the last redraw's duration

export class AccessibilityTree {
  /** @param list element with role="tree"; `onPick(tree, node)` as in the forest. */
  constructor(list, onPick) {
    this.list = list;
    this.onPick = onPick;
    this.active = null; // key of the row that Tab leads to
    this.list.addEventListener("click", ({ target }) => {
      const entry = this.entries?.get(target.closest("[role=treeitem]")?.dataset.key);
      if (entry) this.#choose(entry);
    });
    this.list.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Lists the trees of a step, and the nodes of the tree in focus with their levels. */
  show(seq, trees, focus, selected, matched = null) {
    const version = [seq, trees.length, trees[0]?.id, focus?.id, selected?.id, matched?.size].join();
    if (version === this.version) return;
    this.version = version;
    this.shown = { trees, focus, selected, matched };
    clearTimeout(this.waiting);
    const since = performance.now() - (this.drawn ?? -PAUSE_MS);
    const moved = focus?.id !== this.focus || selected?.id !== this.selected;
    const small = (this.rows?.length ?? 0) < MOST_ROWS;
    const pause = Math.max(PAUSE_MS, PAUSE_FACTOR * (this.cost ?? 0));
    if (small || moved || since >= pause) this.#draw();
    else this.waiting = setTimeout(() => this.#draw(), pause - since);
  }

  #draw() {
    this.drawn = performance.now();
    const { trees, focus, selected, matched } = this.shown;
    [this.focus, this.selected] = [focus?.id, selected?.id];
    this.rows = [];
    const all = focus && !trees.includes(focus) ? [focus, ...trees] : trees;
    all.forEach((tree, position) => {
      this.rows.push({ key: `${tree.id}`, tree, node: null, position, of: all.length });
      if (tree === focus) this.rows.push(...nodeRows(tree, matched?.get(tree.id)));
    });
    const key = focus ? (selected ? `${focus.id}/${selected.id}` : `${focus.id}`) : this.active;
    this.active = this.rows.some((row) => row.key === key) ? key : (this.rows[0]?.key ?? null);
    this.#render();
    this.cost = performance.now() - this.drawn;
  }

  #render() {
    const active = Math.max(0, this.rows.findIndex((row) => row.key === this.active));
    const from = Math.max(0, Math.min(active - MOST_ROWS / 2, this.rows.length - MOST_ROWS));
    const shown = this.rows.slice(from, from + MOST_ROWS);
    const hadFocus = this.list.contains(document.activeElement);
    this.entries = new Map(shown.map((row) => [row.key, row]));
    const items = shown.map((row) => this.#item(row));
    // Unchanged rows stay as they are: in a long list most rows are.
    const existing = [...this.list.children];
    items.forEach((item, index) => {
      if (existing[index]?.isEqualNode(item)) return;
      if (existing[index]) existing[index].replaceWith(item);
      else this.list.append(item);
    });
    for (const item of existing.slice(items.length)) item.remove();
    if (hadFocus) this.#row()?.focus({ preventScroll: false });
  }

  #item(row) {
    const { focus, selected } = this.shown;
    const { tree, node } = row;
    const chosen = node ? node.id === selected?.id : tree === focus && !selected;
    const attributes = {
      role: "treeitem",
      "data-key": row.key,
      "data-level": Math.min(9, node ? node.depth + 1 : 1),
      tabindex: row.key === this.active ? 0 : -1,
      "aria-level": node ? node.depth + 1 : 1,
      "aria-setsize": row.of,
      "aria-posinset": row.position + 1,
      "aria-selected": String(chosen),
      "aria-expanded": node ? null : String(tree === focus),
    };
    return element("li", attributes, node ? describe(node) : describeTree(tree));
  }

  #row() {
    return this.list.querySelector('[tabindex="0"]');
  }

  #choose(row) {
    this.active = row.key;
    this.onPick(row.tree, row.node ?? (row.tree === this.shown.focus ? null : defaultNode(row.tree)));
  }

  #move(index) {
    const row = this.rows[Math.max(0, Math.min(this.rows.length - 1, index))];
    if (!row) return;
    this.active = row.key;
    this.#render();
    this.#row()?.focus();
  }

  #key(event) {
    const at = this.rows?.findIndex((row) => row.key === this.active) ?? -1;
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = this.rows[at];
    const parent = () => this.rows.findIndex((one) => one.tree === row.tree && (one.node?.id ?? 0) === (row.node?.parent ?? 0));
    const keys = {
      ArrowDown: () => this.#move(at + 1),
      ArrowUp: () => this.#move(at - 1),
      Home: () => this.#move(0),
      End: () => this.#move(this.rows.length - 1),
      PageDown: () => this.#move(at + 10),
      PageUp: () => this.#move(at - 10),
      ArrowRight: () => (row.node || row.tree === this.shown.focus ? this.#move(at + 1) : this.onPick(row.tree, null)),
      ArrowLeft: () => (row.node ? this.#move(Math.max(0, parent())) : this.shown.focus && this.onPick(null, null)),
      Enter: () => this.#choose(row),
      " ": () => this.#choose(row),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }
}

/** Returns the nodes of a tree as rows, children below their parents. */
function nodeRows(tree, matched) {
  const below = new Map();
  for (const node of tree.nodes.values()) {
    const parent = tree.nodes.has(node.parent) ? node.parent : 0;
    if (below.has(parent)) below.get(parent).push(node);
    else below.set(parent, [node]);
  }
  const rows = [];
  const stack = [...(below.get(0) ?? [])].reverse();
  const withPositions = (nodes) => nodes.map((node, position) => [node.id, { position, of: nodes.length }]);
  const positions = new Map([...below.values()].flatMap(withPositions));
  while (stack.length) {
    const node = stack.pop();
    if (!matched || matched.has(node.id)) {
      rows.push({ key: `${tree.id}/${node.id}`, tree, node, ...positions.get(node.id) });
    }
    stack.push(...[...(below.get(node.id) ?? [])].reverse());
  }
  return rows;
}
