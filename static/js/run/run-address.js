/**
 * The run page's address: tree, node, event and filters, written and followed.
 *
 * Invariants:
 * - An address that was not followed yet is not overwritten.
 * - A tree or node that has not arrived, or could not be loaded, is opened once it has, unless the
 *   reader chooses another one before.
 */

import { addressOf, readAddress } from "../lib/address.js";

const RETRY_MS = 3_000;

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
    this.awaited = null; // {tree, node, filters}: what is to be opened
  }

  write() {
    if (this.pending) return;
    const { forest, machine } = this;
    const seq = machine.active && !machine.playing ? machine.seq : null;
    const { tree = forest.focus?.id, node = forest.selected?.id } = this.awaited ?? {};
    const ids = { tree, node, seq };
    const hash = addressOf({ ...ids, filters: this.filters() });
    if (hash !== location.hash) {
      history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
    }
  }

  /** Writes that the reader has chosen a tree or node. */
  chosen() {
    if (!this.opening) this.awaited = null;
    this.write();
  }

  /** Opens the event, tree and node of the address: from the fold or, if older, from the server. */
  async follow() {
    if (!this.live().seq) return;
    if (this.pending) await this.#seek();
    if (this.awaited?.ready) await this.#open(this.awaited);
  }

  async #seek() {
    const { tree, node, seq, filters } = this.pending;
    const awaited = tree ? { tree, node, filters } : null;
    this.pending = null;
    this.awaited = awaited;
    this.setFilters(filters);
    const { machine } = this;
    if (seq && seq < this.live().seq) await machine.seek(seq);
    else if (machine.active) machine.live();
    if (awaited) awaited.ready = true;
  }

  async #open(awaited) {
    const { forest, machine } = this;
    const state = this.shown();
    const tree = state.trees.get(awaited.tree) ?? (await this.#load(awaited, state.seq));
    if (!tree || this.awaited !== awaited) return;
    const node = tree.nodes.get(awaited.node) ?? null;
    if (node || !awaited.node || machine.active) this.awaited = null;
    else if (forest.focus?.id === tree.id) return;
    const { filters } = awaited;
    this.opening = true;
    // An older tree is shown among the others of its step.
    if (!state.trees.has(tree.id) && !filters.step) this.setFilters({ ...filters, step: String(tree.step) });
    forest.setFocus(tree, node);
    this.opening = false;
  }

  /** Returns an older tree; null if there is none, or if it could not be loaded now. */
  async #load(awaited, seq) {
    if (performance.now() < (awaited.retryAt ?? 0)) return null;
    awaited.ready = false;
    awaited.retryAt = Infinity; // a tree that has not begun arrives with the log
    try {
      return await this.loads.tree(awaited.tree, seq);
    } catch (error) {
      console.warn("grove: the tree of this address cannot be shown:", error.message);
      if (error.status !== 404) awaited.retryAt = performance.now() + RETRY_MS;
      return null;
    } finally {
      awaited.ready = true;
    }
  }

  /** Fetches the current version of an older tree in focus that is held only as of an earlier event. */
  async refreshFocus() {
    const { forest, loads } = this;
    const { focus } = forest;
    const live = this.live();
    if (!focus || !live.seq || live.trees.has(focus.id)) return;
    const tree = await loads.tree(focus.id, live.seq).catch((error) => {
      console.warn("grove: the tree in focus cannot be renewed:", error.message);
    });
    if (tree && forest.focus === focus) {
      forest.setFocus(tree, tree.nodes.get(forest.selected?.id) ?? null);
    }
  }
}
