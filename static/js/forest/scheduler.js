/**
 * Scheduler of page draws: with the next frame after a user's action, and soon after new data.
 *
 * Invariant: new data take at most a fifth of the time, however many there are: after a draw they
 * wait four times its duration, and at least `least` milliseconds.
 */

const PAUSE_FACTOR = 4;

export class DrawScheduler {
  constructor(draw, minPause = 0) {
    this.draw = draw;
    this.minPause = minPause;
    this.resumeAt = 0; // time from which on new data may be drawn
  }

  /** Draws after a user's action. A hidden tab gets no frames, and is drawn on return. */
  drawNow() {
    clearTimeout(this.timer);
    this.timer = null;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      const began = performance.now();
      this.draw();
      const ended = performance.now();
      this.resumeAt = ended + Math.max(this.minPause, PAUSE_FACTOR * (ended - began));
    });
  }

  /** Schedules a draw of new data. */
  drawSoon() {
    if (this.frame || this.timer) return;
    this.timer = setTimeout(() => this.drawNow(), Math.max(0, this.resumeAt - performance.now()));
  }
}
