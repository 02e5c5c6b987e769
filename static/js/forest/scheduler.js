/**
 * When a page is drawn: with the next frame after somebody did something, and soon after news.
 *
 * Invariant: news take at most a fifth of the time, however many they are: after a drawing they
 * wait four times what it took, and `least` milliseconds at least.
 */

const REST = 4;

export class Pace {
  constructor(draw, least = 0) {
    this.draw = draw;
    this.least = least;
    this.rested = 0; // when news may be drawn again
  }

  /** Somebody did something. A hidden tab gets no frames, and is drawn on return. */
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

  /** Something came. */
  soon() {
    if (this.frame || this.pause) return;
    this.pause = setTimeout(() => this.now(), Math.max(0, this.rested - performance.now()));
  }
}
