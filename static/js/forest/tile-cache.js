/**
 * Cache of tree pictures, for trees that are too many to be drawn in every frame.
 *
 * Invariants:
 * - A picture is redrawn at once when its frame changed (size, camera, colours, filter), and when
 *   its tree changed after a pause of ten times the duration of drawing it, so that drawing takes a
 *   tenth of the time however fast nodes arrive.
 * - One frame redraws stale pictures only while its time budget lasts; the others wait.
 * - `late` is set if a picture that was taken is older than its tree: then the caller draws again.
 */

const PAUSE_FACTOR = 10; // multiple of the cost of a drawing
const MIN_PAUSE_MS = 150;
const FRAME_MS = 8; // spent on layouts and stale pictures in one frame

export class TileCache {
  constructor() {
    this.tiles = new Map();
  }

  begin() {
    this.late = false;
    this.spent = 0;
    this.seen = new Set();
  }

  /** Discards pictures that were not taken since `begin`. */
  end() {
    for (const key of this.tiles.keys()) if (!this.seen.has(key)) this.tiles.delete(key);
  }

  /** Whether the frame's time budget is used up, so that non-urgent work waits. */
  get busy() {
    return this.spent >= FRAME_MS;
  }

  /** Counts milliseconds of the frame's time budget that other work used. */
  spend(ms) {
    this.spent += ms;
  }

  /**
   * Returns the picture of a box of the canvas: {canvas, drawnNodes, fresh}, `fresh` if just redrawn.
   *
   * @param key of the picture; `tree` whose nodes it shows; `frame` and `version` strings;
   *   `paint(context)` draws in the stage's coordinates and returns the `DrawnNodes`.
   */
  get({ key, tree, box, frame, version, paint }) {
    this.seen.add(key);
    let tile = this.tiles.get(key);
    const other = tile?.frame !== frame || tile.tree !== tree;
    if (other || (tile.version !== version && this.#mayDraw(tile))) {
      tile = { ...this.#draw(box, tile, paint), tree, frame, version, fresh: true };
      this.tiles.set(key, tile);
    } else tile.fresh = false;
    this.late ||= tile.version !== version;
    const [dx, dy] = [box.x - tile.x, box.y - tile.y];
    if (dx || dy) {
      Object.assign(tile, { x: box.x, y: box.y });
      tile.drawnNodes.move(dx, dy);
    }
    return tile;
  }

  #mayDraw(tile) {
    return !this.busy && performance.now() - tile.at >= Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * tile.cost);
  }

  #draw(box, before, paint) {
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const canvas = before?.canvas ?? document.createElement("canvas");
    const context = before?.context ?? canvas.getContext("2d");
    const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    // A new size reallocates memory: with the same size, the canvas is kept and only cleared.
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.reset();
    context.setTransform(ratio, 0, 0, ratio, -box.x * ratio, -box.y * ratio);
    const drawnNodes = paint(context);
    const at = performance.now();
    this.spend(at - began);
    return { canvas, context, drawnNodes, at, cost: at - began, x: box.x, y: box.y };
  }
}
