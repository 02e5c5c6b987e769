/**
 * Trees that are too many to be drawn in every frame, kept as pictures.
 *
 * Invariants:
 * - A picture is drawn again at once when its frame changed (size, camera, colours, filter), and
 *   when its tree changed after a rest of ten times what drawing it took, so that drawing takes a
 *   tenth of the time however fast nodes arrive.
 * - `late` says whether something that was shown is older than its tree: then one draws again.
 */

const REST = 10; // times the cost
const LEAST_REST_MS = 100;
const FRAME_MS = 12; // spent on stale pictures in one frame; the rest of them waits for the next

export class Pictures {
  constructor() {
    this.kept = new Map();
  }

  begin() {
    this.late = false;
    this.spent = 0;
    this.seen = new Set();
  }

  /** Forgets what was not shown since `begin`. */
  end() {
    for (const key of this.kept.keys()) if (!this.seen.has(key)) this.kept.delete(key);
  }

  /**
   * Shows a box of the canvas and returns its spots.
   *
   * @param key of the picture; `tree` whose spots it has; `frame` and `version` strings;
   *   `paint(context)` draws in the canvas' own places.
   */
  show(context, { key, tree, box, frame, version, paint }) {
    this.seen.add(key);
    let kept = this.kept.get(key);
    const now = performance.now();
    const other = kept?.frame !== frame || kept.tree !== tree;
    if (other || (kept.version !== version && this.#mayDraw(kept, now))) {
      kept = this.#draw(key, box, kept, paint);
      Object.assign(kept, { tree, frame, version });
    }
    this.late ||= kept.version !== version;
    const { canvas } = kept;
    context.drawImage(canvas, box.x, box.y, box.width, box.height);
    const [dx, dy] = [box.x - kept.x, box.y - kept.y];
    if (!dx && !dy) return kept.spots;
    Object.assign(kept, { x: box.x, y: box.y });
    kept.spots = kept.spots.map((spot) => ({ ...spot, x: spot.x + dx, y: spot.y + dy }));
    return kept.spots;
  }

  #mayDraw(kept, now) {
    return this.spent < FRAME_MS && now - kept.at >= Math.max(LEAST_REST_MS, REST * kept.cost);
  }

  #draw(key, box, before, paint) {
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const canvas = before?.canvas ?? document.createElement("canvas");
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, -box.x * ratio, -box.y * ratio);
    const spots = paint(context);
    const at = performance.now();
    this.spent += at - began;
    const kept = { canvas, spots, at, cost: at - began, x: box.x, y: box.y };
    this.kept.set(key, kept);
    return kept;
  }
}
