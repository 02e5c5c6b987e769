/**
 * The run page's place in its address: tree, node, moment and filters, written and followed.
 *
 * Invariant: an address that was not followed yet is not written over.
 */

import { addressOf, readAddress } from "../lib/address.js";

export class RunAddress {
  /**
   * @param page {forest, machine, loads, live(), shown(), filters(), setFilters(filters)}: the
   *   newest state, the one that is shown, and what is asked for.
   */
  constructor(page) {
    Object.assign(this, page);
    this.read();
  }

  /** Takes what the address asks for; `follow` goes there. */
  read() {
    this.asked = readAddress(location.hash);
  }

  write() {
    if (this.asked) return;
    const { forest, machine } = this;
    const seq = machine.active && !machine.playing ? machine.seq : null;
    const places = { tree: forest.focus?.id, node: forest.selected?.id, seq };
    const hash = addressOf({ ...places, filters: this.filters() });
    if (hash !== location.hash) {
      history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
    }
  }

  /** Opens the moment, tree and node: from the fold or, if older, from the server. */
  async follow() {
    if (!this.asked || !this.live().seq) return;
    const { tree: id, node, seq, filters } = this.asked;
    this.asked = null;
    this.setFilters(filters);
    const { forest, machine, loads } = this;
    if (seq && seq < this.live().seq) await machine.seek(seq);
    else if (machine.active) machine.live();
    const state = this.shown();
    const tree = id && (state.trees.get(id) ?? (await loads.tree(id, state.seq)));
    if (!tree) return;
    // An older tree stands among the others of its step.
    if (!state.trees.has(id) && !filters.step) this.setFilters({ ...filters, step: String(tree.step) });
    forest.setFocus(tree, tree.nodes.get(node) ?? null);
  }

  /** An older tree in focus, of which only an earlier moment is known, is fetched as it is now. */
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
