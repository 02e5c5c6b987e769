/** The forest as a list: what the canvas shows, for those who hear the page. */

import { element } from "./dom.js";
import { describe, describeTree } from "./forest.js";

const MOST_NODES = 256; // the newest of a tree; a longer list is no help to hear

export class Twin {
  /** @param list element with role="tree"; `onPick(tree, node)` as in the forest. */
  constructor(list, onPick) {
    this.list = list;
    this.list.addEventListener("click", ({ target }) => {
      const entry = this.entries?.get(target.closest("[role=treeitem]"));
      if (entry) onPick(...entry);
    });
  }

  /** Lists the trees of a step, and the nodes of the tree in focus with their levels. */
  show(seq, trees, focus, selected) {
    const shown = [seq, trees[0]?.id, focus?.id, selected?.id].join();
    if (shown === this.shown) return;
    this.shown = shown;
    this.entries = new Map();
    const rows = trees.flatMap((tree) => {
      const open = tree === focus;
      const row = this.#row(describeTree(tree), 1, [tree, null], open && !selected);
      row.setAttribute("aria-expanded", String(open));
      return open ? [row, ...this.#nodes(tree, selected)] : [row];
    });
    this.list.replaceChildren(...rows);
  }

  #nodes(tree, selected) {
    const newest = [...tree.nodes.values()].slice(-MOST_NODES);
    return newest.map((node) =>
      this.#row(describe(node), node.depth + 1, [tree, node], node === selected),
    );
  }

  #row(text, level, entry, chosen) {
    const row = element(
      "li",
      { role: "treeitem", "aria-level": level, "aria-selected": String(chosen) },
      text,
    );
    this.entries.set(row, entry);
    return row;
  }
}
