/**
 * The page as of an earlier event: state(seq), stepped, scrubbed and played.
 *
 * Invariants:
 * - `state` is fold(the log up to `seq`): it holds nothing from later events.
 * - A window of the log is held: the server's state at `base` and every event after it up to `end`.
 *   A seq outside is fetched; of several concurrent requests, the last one wins.
 *
 * Waits: for the server, with no deadline of its own; `onError` reports a failure, and the page
 * stays at its event. Free of the DOM; `env` provides clock and timer.
 */

import { emptyState, fold } from "../stream/fold.js";

const BEFORE = 400; // events fetched before a seq, so that steps back need no request
const AFTER = 3000;
const TICK_MS = 50;
const LONGEST_WAIT_MS = 1000; // longest pause in the log while playing

export const SPEEDS = [1, 2, 4, 8, 16, 32, 64];

export class TimeMachine {
  /**
   * @param options {loadState(seq), loadEvents(after, until), head(), onChange(), onLive(),
   *   onError(error)}:
   *   the loaders resolve to {seq, events} and [event]; head() returns the newest seq.
   */
  constructor(options, env = { later: setTimeout.bind(globalThis), cancel: clearTimeout.bind(globalThis), now: () => performance.now() }) {
    Object.assign(this, options);
    this.env = env;
    this.state = null; // null: the page is live
    this.playing = false;
    this.speed = 8;
    this.requests = 0;
    this.window = null;
  }

  get active() {
    return this.state !== null;
  }

  get seq() {
    return this.state?.seq ?? this.head();
  }

  /** Returns to the live state. */
  live() {
    this.pause();
    this.requests += 1;
    this.state = null;
    this.window = null;
    this.onLive?.();
    this.onChange();
  }

  /** Shows the run as of event `seq`. */
  seek(seq) {
    this.clock = null;
    return this.#go(seq);
  }

  async #go(seq) {
    const target = Math.max(1, Math.min(Math.round(seq), this.head()));
    const request = (this.requests += 1);
    try {
      const window = this.#holds(target) ? this.window : await this.#load(target);
      if (request !== this.requests) return false;
      this.window = window;
      this.#show(target);
      return true;
    } catch (error) {
      if (request === this.requests) this.onError(error);
      return false;
    }
  }

  /** Moves to the next (1) or previous (-1) `node.close`; stays if there is none. */
  async step(direction) {
    this.pause();
    const from = this.seq;
    let loaded = await this.seek(from);
    while (loaded) {
      const neighbour = this.#neighbour(from, direction);
      if (neighbour !== null) {
        await this.#go(neighbour);
        return;
      }
      const { base, end } = this.window;
      const edge = direction > 0 ? end : base;
      loaded = (direction > 0 ? end < this.head() : base > 0) && (await this.#moveWindow(edge));
    }
  }

  async #moveWindow(seq) {
    const request = (this.requests += 1);
    try {
      const window = await this.#load(seq);
      if (request === this.requests) this.window = window;
    } catch (error) {
      this.onError(error);
      return false;
    }
    return request === this.requests;
  }

  async play() {
    if (this.playing) return;
    const from = this.seq >= this.head() ? 1 : this.seq;
    this.playing = true;
    this.onChange();
    if (!(await this.seek(from))) {
      this.pause();
      return;
    }
    this.#tick();
  }

  pause() {
    this.playing = false;
    this.env.cancel(this.timer);
    this.onChange();
  }

  setSpeed(speed) {
    this.speed = speed;
    this.onChange();
  }

  #holds(seq) {
    return this.window !== null && seq >= this.window.base && seq <= this.window.end;
  }

  async #load(seq) {
    const base = Math.max(0, seq - BEFORE);
    const end = Math.min(this.head(), seq + AFTER);
    const [start, tail] = await Promise.all([
      base ? this.loadState(base) : { seq: 0, events: [] },
      this.loadEvents(base, end),
    ]);
    return { base, end, start: start.events, tail };
  }

  #show(seq) {
    const { start, tail, base } = this.window;
    if (!this.state || this.state.seq > seq || this.state.seq < base || this.folded !== this.window) {
      this.state = fold(start, emptyState());
      this.state.seq = base;
      this.folded = this.window;
    }
    const from = firstAfter(tail, this.state.seq);
    const to = firstAfter(tail, seq);
    fold(tail.slice(from, to), this.state);
    this.state.seq = seq;
    this.onChange();
  }

  #neighbour(seq, direction) {
    const { tail } = this.window;
    const at = direction > 0 ? firstAfter(tail, seq) : firstAfter(tail, seq - 1) - 1;
    for (let index = at; index >= 0 && index < tail.length; index += direction) {
      if (tail[index][2] === "node.close") return tail[index][0];
    }
    return null;
  }

  /** Advances at the log's own pace times `speed`; long pauses are shortened. */
  #tick() {
    const began = this.env.now();
    this.timer = this.env.later(async () => {
      if (!this.playing) return;
      this.clock = (this.clock ?? this.state.time) + (this.env.now() - began) * this.speed;
      const next = this.#due();
      const shown = next === null || (await this.#go(next));
      if (!shown || this.seq >= this.head()) this.pause();
      else if (this.playing) this.#tick();
    }, TICK_MS);
  }

  /** Returns the seq that the clock has reached; null while nothing is due. */
  #due() {
    const { tail, end } = this.window;
    let index = firstAfter(tail, this.state.seq);
    const most = LONGEST_WAIT_MS * this.speed;
    if (tail[index]?.[1] - this.clock > most) this.clock = tail[index][1] - most;
    while (index < tail.length && tail[index][1] <= this.clock) index += 1;
    if (index === tail.length) return end < this.head() ? end + 1 : end;
    const reached = tail[index - 1]?.[0] ?? 0;
    return reached > this.state.seq ? reached : null;
  }
}

/** Returns the index of the first event after a seq, in events sorted by seq. Pure. */
export function firstAfter(events, seq) {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle][0] > seq) high = middle;
    else low = middle + 1;
  }
  return low;
}
