/**
 * Trees that are too many to be drawn in every frame, kept as pictures.
 *
 * Invariants:
 * - A picture is drawn again at once when its frame changed (size, camera, colours, filter), and
 *   when its tree changed after a rest of ten times what drawing it took, so that drawing takes a
 *   tenth of the time however fast nodes arrive.
 * - In one frame no more stale pictures are begun than its share of time allows; the others wait.
 * - `late` says whether something that was taken is older than its tree: then one draws again.
 */

const REST = 10; // times the cost
const LEAST_REST_MS = 150;
const FRAME_MS = 8; // spent on layouts and stale pictures in one frame

export class Pictures {
  constructor() {
    this.kept = new Map();
  }

  begin() {
    this.late = false;
    this.spent = 0;
    this.seen = new Set();
  }

  /** Forgets what was not taken since `begin`. */
  end() {
    for (const key of this.kept.keys()) if (!this.seen.has(key)) this.kept.delete(key);
  }

  /** Whether what is not urgent waits for the next frame. */
  get busy() {
    return this.spent >= FRAME_MS;
  }

  /** Notes milliseconds of the frame's share that went into something else. */
  spend(ms) {
    this.spent += ms;
  }

  /**
   * The picture of a box of the canvas: {canvas, spots, fresh}, `fresh` if it was drawn just now.
   *
   * @param key of the picture; `tree` whose spots it has; `frame` and `version` strings;
   *   `paint(context)` draws in the places that the box has on the stage and returns the spots.
   */
  take({ key, tree, box, frame, version, paint }) {
    this.seen.add(key);
    let kept = this.kept.get(key);
    const other = kept?.frame !== frame || kept.tree !== tree;
    if (other || (kept.version !== version && this.#mayDraw(kept))) {
      kept = { ...this.#draw(box, kept, paint), tree, frame, version, fresh: true };
      this.kept.set(key, kept);
    } else kept.fresh = false;
    this.late ||= kept.version !== version;
    const [dx, dy] = [box.x - kept.x, box.y - kept.y];
    if (dx || dy) {
      Object.assign(kept, { x: box.x, y: box.y });
      kept.spots.move(dx, dy);
    }
    return kept;
  }

  #mayDraw(kept) {
    return !this.busy && performance.now() - kept.at >= Math.max(LEAST_REST_MS, REST * kept.cost);
  }

  #draw(box, before, paint) {
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const canvas = before?.canvas ?? document.createElement("canvas");
    const context = before?.context ?? canvas.getContext("2d");
    const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    // A new size gives new memory: where it is the same, that is kept and only cleared.
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.reset();
    context.setTransform(ratio, 0, 0, ratio, -box.x * ratio, -box.y * ratio);
    const spots = paint(context);
    const at = performance.now();
    this.spend(at - began);
    return { canvas, context, spots, at, cost: at - began, x: box.x, y: box.y };
  }
}
