/**
 * Scheduler of page draws: with the next frame after a user's action, and soon after new data.
 *
 * Invariant: new data take at most a fifth of the time, however many there are: after a draw they
 * wait four times its duration, and at least `least` milliseconds.
 */

const REST = 4;

export class Pace {
  constructor(draw, least = 0) {
    this.draw = draw;
    this.least = least;
    this.rested = 0; // time from which on new data may be drawn
  }

  /** Draws after a user's action. A hidden tab gets no frames, and is drawn on return. */
  now() {
    clearTimeout(this.pause);
    this.pause = null;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      const began = performance.now();
      this.draw();
      const ended = performance.now();
      this.rested = ended + Math.max(this.least, REST * (ended - began));
    });
  }

  /** Schedules a draw of new data. */
  soon() {
    if (this.frame || this.pause) return;
    this.pause = setTimeout(() => this.now(), Math.max(0, this.rested - performance.now()));
  }
}
