/**
 * The steps whose trees are in view: the newest, or any other range of the run.
 *
 * Invariants:
 * - The fold holds the trees of the two newest steps; older ones are loaded on request, at most
 *   `MOST_NODES` nodes in all, and are shown as the log recorded them up to the event that the
 *   page shows.
 * - Loaded trees are discarded when the run resumes, which voids steps.
 *
 * Waits: for the server, one step after the other, without a deadline of its own; a failure is in
 * `error` and reported to `onError`; it is retried by `retry` or when another range is requested. Free
 * of the DOM.
 */

import { fold, forestSteps, treesOf } from "../stream/fold.js";

export const MOST_NODES = 20_000;
const GROWN_EVENTS = 2000; // events after which trees that were still open are requested again

export class Steps {
  /** @param options {load(step, seq) -> [event], onChange(), onError(error)} */
  constructor(options) {
    Object.assign(this, options);
    this.range = null; // {from, to}; null: the newest
    this.loaded = new Map(); // step -> {trees, last, until}: `until` is the seq of the request
    this.failed = new Set();
    this.error = null; // the last failure to load a step of the range
    this.full = false;
    this.resumes = 0;
  }

  /** @param range {from, to}, or null for the newest step. */
  choose(range) {
    if (range?.from !== this.range?.from || range?.to !== this.range?.to) this.#resetFailures();
    this.range = range;
  }

  /** Requests steps again that could not be loaded. */
  retry() {
    this.#resetFailures();
    this.onChange();
  }

  #resetFailures() {
    this.failed.clear();
    this.error = null;
  }

  /** Returns the trees of a state to show, in the order of their steps; requests missing ones. */
  trees(state) {
    if (state.resumes !== this.resumes) this.loaded.clear();
    this.resumes = state.resumes;
    const [newest] = forestSteps(state);
    this.full = false;
    if (!this.range) return newest === undefined ? [] : treesOf(state, newest);
    const shown = [];
    let nodes = 0;
    // Newest first, so that a range that is too long loses its oldest steps.
    for (let step = Math.min(this.range.to, state.step); step >= this.range.from; step -= 1) {
      const trees = this.#of(step, state);
      nodes += trees.reduce((sum, tree) => sum + tree.nodes.size, 0);
      if (nodes > MOST_NODES && shown.length) {
        this.full = true;
        break;
      }
      shown.unshift(...trees);
      if (this.loading) break;
    }
    return shown;
  }

  /** Returns a tree of an older step, if it was loaded; else undefined. */
  findTree(id) {
    for (const { trees } of this.loaded.values()) {
      const tree = trees.find((one) => one.id === id);
      if (tree) return tree;
    }
    return undefined;
  }

  #of(step, state) {
    const current = treesOf(state, step);
    if (current.length) return current;
    const cached = this.loaded.get(step);
    if (cached && isValidAt(cached, state.seq)) return cached.trees;
    if (!this.failed.has(step)) this.#load(step, state.seq);
    return cached?.trees ?? [];
  }

  async #load(step, seq) {
    if (this.loading) return;
    this.loading = true;
    try {
      const events = await this.load(step, seq);
      const trees = [...fold(events).trees.values()];
      const last = trees.reduce((most, tree) => Math.max(most, tree.seq), 0);
      this.loaded.set(step, { trees, last, until: seq });
      if (this.loaded.size > 1000) this.loaded.delete(this.loaded.keys().next().value);
    } catch (error) {
      this.failed.add(step);
      if (step >= this.range?.from && step <= this.range?.to) this.error = error;
      this.onError(error);
    } finally {
      this.loading = false;
    }
    this.onChange();
  }
}

/** Returns whether loaded trees are valid at `seq`: no event about them since, or not many. */
function isValidAt({ trees, last, until }, seq) {
  if (seq < last) return false;
  return seq <= until || trees.every((tree) => tree.closed) || seq < until + GROWN_EVENTS;
}
