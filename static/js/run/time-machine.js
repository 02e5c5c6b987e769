/**
 * The page as of an earlier event: state(seq), stepped, scrubbed and played.
 *
 * Invariants:
 * - `state` is fold(the log up to `seq`): it holds nothing from later events.
 * - A window of the log is held: the server's state at `base` and every event after it up to `end`.
 *   A seq outside is fetched; of several concurrent requests, the last one wins.
 *
 * Waits: for the server, with no deadline of its own; `onFault` reports a failure, and the page
 * stays at its event. Free of the DOM; `world` provides clock and timer.
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
   *   onFault(error)}:
   *   the loaders resolve to {seq, events} and [event]; head() returns the newest seq.
   */
  constructor(options, world = { later: setTimeout.bind(globalThis), cancel: clearTimeout.bind(globalThis), now: () => performance.now() }) {
    Object.assign(this, options);
    this.world = world;
    this.state = null; // null: the page is live
    this.playing = false;
    this.speed = 8;
    this.asked = 0;
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
    this.asked += 1;
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
    const wanted = Math.max(1, Math.min(Math.round(seq), this.head()));
    const turn = (this.asked += 1);
    try {
      const window = this.#holds(wanted) ? this.window : await this.#load(wanted);
      if (turn !== this.asked) return false;
      this.window = window;
      this.#show(wanted);
      return true;
    } catch (error) {
      if (turn === this.asked) this.onFault(error);
      return false;
    }
  }

  /** Moves to the next (1) or previous (-1) `node.close`; stays if there is none. */
  async step(direction) {
    this.pause();
    const from = this.seq;
    let well = await this.seek(from);
    while (well) {
      const place = this.#neighbour(from, direction);
      if (place !== null) {
        await this.#go(place);
        return;
      }
      const { base, end } = this.window;
      const edge = direction > 0 ? end : base;
      well = (direction > 0 ? end < this.head() : base > 0) && (await this.#moveWindow(edge));
    }
  }

  async #moveWindow(seq) {
    const turn = (this.asked += 1);
    try {
      const window = await this.#load(seq);
      if (turn === this.asked) this.window = window;
    } catch (error) {
      this.onFault(error);
      return false;
    }
    return turn === this.asked;
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
    this.world.cancel(this.timer);
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
    for (let place = at; place >= 0 && place < tail.length; place += direction) {
      if (tail[place][2] === "node.close") return tail[place][0];
    }
    return null;
  }

  /** Advances at the log's own pace times `speed`; long pauses are shortened. */
  #tick() {
    const began = this.world.now();
    this.timer = this.world.later(async () => {
      if (!this.playing) return;
      this.clock = (this.clock ?? this.state.time) + (this.world.now() - began) * this.speed;
      const next = this.#due();
      const well = next === null || (await this.#go(next));
      if (!well || this.seq >= this.head()) this.pause();
      else if (this.playing) this.#tick();
    }, TICK_MS);
  }

  /** Returns the seq that the clock has reached; null while nothing is due. */
  #due() {
    const { tail, end } = this.window;
    let place = firstAfter(tail, this.state.seq);
    const most = LONGEST_WAIT_MS * this.speed;
    if (tail[place]?.[1] - this.clock > most) this.clock = tail[place][1] - most;
    while (place < tail.length && tail[place][1] <= this.clock) place += 1;
    if (place === tail.length) return end < this.head() ? end + 1 : end;
    const reached = tail[place - 1]?.[0] ?? 0;
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
