/**
 * The canvas of the forest: lays out the trees and paints them.
 *
 * Invariants:
 * - The picture follows from the view passed to `paint`. With many nodes it may lag by some hundred
 *   milliseconds; then `late` is set, and the forest paints again.
 * - With many nodes, only boxes whose tree changed are painted, unless the scene changed: sizes,
 *   what is in focus, open or pointed at, colours, filters, the position on the screen.
 */

import { through } from "./camera.js";
import { focusFit, paintFocus, paintSmall, paintTile } from "./forest-paint.js";
import { grid, layout } from "./layout.js";
import { descendants } from "../run/lineage.js";
import { TileCache } from "./tile-cache.js";
import { ring } from "./tree-paint.js";

export const MANY = 600; // nodes on the stage from which on trees are cached as tiles
const SMALL_TILES = { least: 98, ratio: 0.86 };
const NARROW = 520; // px of a stage that shows smaller tiles
const FOCUS_GAP = 12; // px between the tree in focus and the others below it
const LAYOUT_PAUSE_FACTOR = 12; // multiple of a layout's duration before a growing tree is laid out again
const MIN_LAYOUT_PAUSE_MS = 150;
const SMALL_TREE = 400; // nodes up to which a layout costs next to nothing
const NEAR = 300; // px off the screen within which a tile is painted
const POSITION_CHECK_MS = 500; // between two checks whether the content above has moved the stage

export class ForestStage {
  constructor(stage, canvas) {
    this.stage = stage;
    this.canvas = canvas;
    this.shapes = new WeakMap();
    this.tileCache = new TileCache();
    this.groups = new Map(); // key of a picture -> {tree, box, drawnNodes} for hit tests
    this.tiles = [];
    this.checkedAt = 0; // time of the last check; `top` is that of the canvas then
    this.top = 0;
    this.width = stage.clientWidth;
    new ResizeObserver(() => this.resized()).observe(stage);
  }

  /** Reads the width; reading it while painting would force a layout of the page. */
  resized() {
    this.width = this.stage.clientWidth;
    this.moved = true;
  }

  /** Notes that the stage moved on the screen; call it after every scroll. */
  scrolled() {
    this.moved = true;
  }

  /** Returns the position of a node, {tree, node, x, y, r}; null if it is not drawn. */
  drawnPositionOf(node) {
    for (const { drawnNodes } of this.groups.values()) {
      const hit = drawnNodes.of(node);
      if (hit) return hit;
    }
    return null;
  }

  /** Whether a node is drawn that is still open. */
  get hasOpenNodes() {
    const isOpen = (node) => !node.closed;
    return [...this.groups.values()].some(({ drawnNodes }) => drawnNodes.nodes.some(isOpen));
  }

  /**
   * Paints a view: {trees, shown, focus, camera, folds, matchedIn(tree), query, open, over,
   * palette, colour, lookOf, pulse}.
   */
  paint(view) {
    if (!this.width) this.resized(); // it was hidden
    if (!this.width) return;
    this.late = false;
    const nodes = view.shown.reduce((sum, tree) => sum + tree.nodes.size, view.focus?.nodes.size ?? 0);
    this.many = nodes > MANY;
    this.tileCache.begin();
    const box = view.focus ? this.focusBox(view.focus, view.folds) : null;
    this.#checkPosition();
    const scene = this.#sceneOf(view, box);
    this.whole = !this.many || this.moved || scene !== this.scene;
    Object.assign(this, { scene, moved: false });
    if (this.whole) this.#layOut(view, box);
    if (box) this.#focus(box, view);
    for (const tile of this.near) this.#tile(tile, view);
    if (this.whole) this.tileCache.end();
    this.late ||= this.tileCache.late;
    this.canvas.dataset.nodes = nodes - (view.focus && view.shown.includes(view.focus) ? view.focus.nodes.size : 0);
  }

  /** Reads the stage's position on the screen, which content above it moves without a scroll. */
  #checkPosition() {
    const now = performance.now();
    if (!this.many || now - this.checkedAt < POSITION_CHECK_MS) return;
    this.checkedAt = now;
    this.moved ||= Math.abs(this.canvas.getBoundingClientRect().top - this.top) > NEAR / 2;
  }

  /** Returns everything that a picture depends on apart from its tree, as text. */
  #sceneOf({ trees, shown, focus, camera, folds, query, open, over, palette, colour }, box) {
    if (!this.many) return "";
    const folded = [...folds].map(([tree, ids]) => `${tree}:${[...ids]}`);
    const geometry = [this.width, box?.height, devicePixelRatio, camera.k, camera.x, camera.y, folded];
    const pointed = [focus?.id, open?.id, over?.tree.id];
    return [...geometry, ...pointed, palette.text, colour, query, trees.length, ...shown.map((tree) => tree.id)].join();
  }

  /** Lays out all boxes again on an empty canvas. */
  #layOut(view, box) {
    const plan = grid(view.shown.length, this.width, box || this.width < NARROW ? SMALL_TILES : {});
    const below = box ? box.height + FOCUS_GAP : 0;
    this.#clear(this.width, Math.max(90, below + plan.height));
    const numbers = new Map(view.trees.map((tree, index) => [tree.id, index + 1]));
    this.tiles = plan.tiles.map((tile, index) => {
      const tree = view.shown[index];
      return { ...tile, y: tile.y + below, tree, number: numbers.get(tree.id) };
    });
    // Tiles far from the screen wait until they are scrolled into view.
    this.top = this.canvas.getBoundingClientRect().top;
    const from = (y) => this.top + y;
    const isNear = ({ y, height }) => from(y) <= innerHeight + NEAR && from(y + height) >= -NEAR;
    this.near = this.tiles.filter(isNear);
    this.groups = new Map();
  }

  #focus(box, view) {
    const { focus: tree, camera } = view;
    const ids = [...(view.folds.get(tree.id) ?? [])];
    const folded = new Map(ids.map((id) => [id, descendants(tree, id).size]));
    const picture = { ...view, folded, matched: view.matchedIn(tree) };
    const paint = (on) => paintFocus(on, box, tree, this.shape(tree, view.folds), picture);
    const geometry = [camera.k, camera.x, camera.y, ids];
    this.#paintBox({ key: `focus ${tree.id}`, tree, box, geometry, view, paint });
  }

  #tile(tile, view) {
    // After a reset the same tree is another object.
    const tree = view.shown.find(({ id }) => id === tile.tree.id) ?? tile.tree;
    tile.tree = tree;
    const over = view.over?.tree === tree || view.focus === tree;
    const under = () => paintTile(this.context, tile, tree, { ...view, over, number: tile.number });
    const paint = (on) => {
      const picture = { ...view, matched: view.matchedIn(tree) };
      return paintSmall(on, tile, tree, this.shape(tree, view.folds), picture);
    };
    const geometry = [...(view.folds.get(tree.id) ?? [])];
    this.#paintBox({ key: tree.id, tree, box: tile, geometry, view, paint, under });
  }

  /** Paints a box, with `under` below the picture, and records what can be pointed at. */
  #paintBox({ key, tree, box, geometry, view, paint, under }) {
    const { context } = this;
    let drawnNodes;
    if (!this.many) {
      under?.();
      drawnNodes = paint(context);
    } else {
      const { palette, colour, query } = view;
      const frame = [box.width, box.height, devicePixelRatio, palette.text, colour, query, geometry].join();
      const version = `${tree.seq} ${this.shapes.get(tree)?.size}`;
      const tile = this.tileCache.get({ key, tree, box, frame, version, paint });
      if (!this.whole && !tile.fresh) return;
      // One pixel more: the frame of a tile that is pointed at is wider than its box.
      if (!this.whole) context.clearRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
      under?.();
      context.drawImage(tile.canvas, box.x, box.y, box.width, box.height);
      drawnNodes = tile.drawnNodes;
    }
    this.groups.set(key, { tree, box, drawnNodes });
    const { open } = view;
    const hit = open?.tree === tree.id ? drawnNodes.of(open) : null;
    if (hit) ring(context, hit.x, hit.y, hit.r, view.palette);
  }

  /** Returns the box in which the tree in focus is drawn. */
  focusBox(tree, folds) {
    const { height } = this.shape(tree, folds);
    const tall = Math.max(280, Math.min(640, 110 + Math.max(2, height) * 80));
    return { x: 0, y: 0, width: this.width, height: tall };
  }

  /** Returns the position of a node of the tree in focus on the canvas; null if it has none. */
  positionOf(tree, folds, camera, id) {
    const shape = this.shape(tree, folds);
    const unit = shape.positions.get(id);
    return unit ? through(focusFit(this.focusBox(tree, folds), shape), camera)(unit) : null;
  }

  /** Returns the layout of a tree; that of a big growing tree may lack its newest nodes briefly. */
  shape(tree, folds) {
    const cached = this.shapes.get(tree);
    if (cached?.size === tree.nodes.size) return cached.shape;
    const began = performance.now();
    const isPausing = cached && began - cached.at < Math.max(MIN_LAYOUT_PAUSE_MS, LAYOUT_PAUSE_FACTOR * cached.cost);
    if (cached && tree.nodes.size > SMALL_TREE && (isPausing || this.tileCache.busy)) {
      this.late = true;
      return cached.shape;
    }
    const shape = layout(tree.nodes.values(), folds.get(tree.id));
    const at = performance.now();
    this.shapes.set(tree, { size: tree.nodes.size, shape, at, cost: at - began });
    this.tileCache.spend(at - began);
    return shape;
  }

  /** Discards a tree's layout; call it when nodes of the tree were folded or unfolded. */
  discardLayout(tree) {
    this.shapes.delete(tree);
  }

  #clear(width, height) {
    const ratio = window.devicePixelRatio || 1;
    const { canvas } = this;
    this.context ??= canvas.getContext("2d");
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    this.context.reset();
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** Returns the hit at a canvas point, {tree, node, x, y, r}, `node` null within a tile; or null. */
  at(x, y, reach) {
    let best = null;
    let least = Infinity;
    const isIn = (box, more = 0) =>
      x >= box.x - more && x <= box.x + box.width + more && y >= box.y - more && y <= box.y + box.height + more;
    for (const { box, drawnNodes } of this.groups.values()) {
      const nearest = isIn(box, reach) ? drawnNodes.nearest(x, y) : null;
      if (nearest && nearest.away < least) [best, least] = [nearest.hit, nearest.away];
    }
    const tile = this.tiles.find((box) => isIn(box));
    if (best && least <= reach && (!tile || tile.tree === best.tree)) return best;
    return tile ? { tree: tile.tree, node: null, x, y, r: 8 } : null;
  }
}
