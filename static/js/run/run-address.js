/**
 * The run page's address: tree, node, event and filters, written and followed.
 *
 * Invariant: an address that was not followed yet is not overwritten.
 */

import { addressOf, readAddress } from "../lib/address.js";

export class RunAddress {
  /**
   * @param page {forest, machine, loads, live(), shown(), filters(), setFilters(filters)}: `live()`
   *   is the newest state, `shown()` the displayed one.
   */
  constructor(page) {
    Object.assign(this, page);
    this.read();
  }

  /** Reads the address; `follow` then opens what it names. */
  read() {
    this.pending = readAddress(location.hash);
  }

  write() {
    if (this.pending) return;
    const { forest, machine } = this;
    const seq = machine.active && !machine.playing ? machine.seq : null;
    const ids = { tree: forest.focus?.id, node: forest.selected?.id, seq };
    const hash = addressOf({ ...ids, filters: this.filters() });
    if (hash !== location.hash) {
      history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
    }
  }

  /** Opens the event, tree and node of the address: from the fold or, if older, from the server. */
  async follow() {
    if (!this.pending || !this.live().seq) return;
    const { tree: id, node, seq, filters } = this.pending;
    this.pending = null;
    this.setFilters(filters);
    const { forest, machine, loads } = this;
    if (seq && seq < this.live().seq) await machine.seek(seq);
    else if (machine.active) machine.live();
    const state = this.shown();
    const tree = id && (state.trees.get(id) ?? (await loads.tree(id, state.seq)));
    if (!tree) return;
    // An older tree is shown among the others of its step.
    if (!state.trees.has(id) && !filters.step) this.setFilters({ ...filters, step: String(tree.step) });
    forest.setFocus(tree, tree.nodes.get(node) ?? null);
  }

  /** Fetches the current version of an older tree in focus that is held only as of an earlier event. */
  async refreshFocus() {
    const { forest, loads } = this;
    const { focus } = forest;
    const live = this.live();
    if (!focus || !live.seq || live.trees.has(focus.id)) return;
    const tree = await loads.tree(focus.id, live.seq);
    if (tree && forest.focus === focus) {
      forest.setFocus(tree, tree.nodes.get(forest.selected?.id) ?? null);
    }
  }
}
