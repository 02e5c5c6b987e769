/**
 * The canvas of the forest: places the trees and paints them.
 *
 * Invariant: the picture follows from the view that it is given; `spots` and `tiles` are what can
 * be pointed at in the last picture. Where many nodes are shown it may be some hundred
 * milliseconds behind; `late` says so, and the forest paints again.
 */

import { through } from "./camera.js";
import { focusFit, paintFocus, paintSmall, paintTile } from "./forest-paint.js";
import { grid, layout } from "./layout.js";
import { descendants } from "./lineage.js";
import { Pictures } from "./pictures.js";
import { ring } from "./tree-paint.js";

export const MANY = 1500; // nodes on the stage from which on trees are kept as pictures
const SMALL_TILES = { least: 98, ratio: 0.86 };
const NARROW = 520; // px of a stage that shows smaller tiles
const FOCUS_GAP = 12; // px between the tree in focus and the others below it
const REST = 12; // times what a layout took before a growing tree is laid out again
const LEAST_REST_MS = 150;
const SMALL_TREE = 400; // nodes up to which a layout costs next to nothing

export class ForestStage {
  constructor(stage, canvas) {
    this.stage = stage;
    this.canvas = canvas;
    this.shapes = new WeakMap();
    this.pictures = new Pictures();
    this.spots = [];
    this.tiles = [];
  }

  get width() {
    return this.stage.clientWidth;
  }

  /**
   * Paints a view: {trees, shown, focus, camera, folds, matchedIn(tree), asked, open, over,
   * palette, colour, lookOf, pulse}.
   */
  paint(view) {
    const { width } = this;
    if (!width) return;
    this.late = false;
    const stage = view.focus ? this.focusBox(view.focus, view.folds) : null;
    const plan = grid(view.shown.length, width, stage || width < NARROW ? SMALL_TILES : {});
    const top = stage ? stage.height + FOCUS_GAP : 0;
    const context = this.#context(width, Math.max(90, top + plan.height));
    const nodes = view.shown.reduce((sum, tree) => sum + tree.nodes.size, view.focus?.nodes.size ?? 0);
    this.many = nodes > MANY;
    this.pictures.begin();
    this.spots = stage ? [...this.#focus(context, stage, view)] : [];
    const numbers = new Map(view.trees.map((tree, index) => [tree, index + 1]));
    this.tiles = plan.tiles.map((box, index) => {
      const tree = view.shown[index];
      return { ...box, y: box.y + top, tree, number: numbers.get(tree) };
    });
    this.#paintTiles(context, view);
    for (const { node, x, y, r } of this.spots) {
      if (node === view.open) ring(context, x, y, r, view.palette);
    }
    this.pictures.end();
    this.late ||= this.pictures.late;
    this.canvas.dataset.nodes = nodes - (view.focus && view.shown.includes(view.focus) ? view.focus.nodes.size : 0);
  }

  #focus(context, box, view) {
    const { focus: tree, camera } = view;
    const ids = [...(view.folds.get(tree.id) ?? [])];
    const folded = new Map(ids.map((id) => [id, descendants(tree, id).size]));
    const picture = { ...view, folded, matched: view.matchedIn(tree) };
    const paint = (on) => paintFocus(on, box, tree, this.shape(tree, view.folds), picture);
    const about = [camera.k, camera.x, camera.y, ids];
    return this.#shown(context, { key: `focus ${tree.id}`, tree, box, about, view, paint });
  }

  #paintTiles(context, view) {
    const top = this.canvas.getBoundingClientRect().top;
    for (const tile of this.tiles) {
      // Tiles far from the screen wait until they are scrolled to.
      const from = top + tile.y;
      if (from > innerHeight + 300 || from + tile.height < -300) continue;
      const { tree, number } = tile;
      const over = view.over?.tree === tree || view.focus === tree;
      paintTile(context, tile, tree, { ...view, over, number });
      const picture = { ...view, matched: view.matchedIn(tree) };
      const paint = (on) => paintSmall(on, tile, tree, this.shape(tree, view.folds), picture);
      const about = [...(view.folds.get(tree.id) ?? [])];
      // Not by spreading: a tree may have more spots than a call takes arguments.
      const spots = this.#shown(context, { key: tree.id, tree, box: tile, about, view, paint });
      for (const spot of spots) this.spots.push(spot);
    }
  }

  #shown(context, { key, tree, box, about, view, paint }) {
    if (!this.many) return paint(context);
    const { palette, colour, asked } = view;
    const frame = [box.width, box.height, devicePixelRatio, palette.text, colour, asked, about].join();
    const version = `${tree.seq} ${this.shapes.get(tree)?.size}`;
    return this.pictures.show(context, { key, tree, box, frame, version, paint });
  }

  /** Where the tree in focus is drawn. */
  focusBox(tree, folds) {
    const { height } = this.shape(tree, folds);
    const tall = Math.max(280, Math.min(640, 110 + Math.max(2, height) * 80));
    return { x: 0, y: 0, width: this.width, height: tall };
  }

  /** Where a node of the tree in focus is on the canvas; null where it has no place. */
  placeOf(tree, folds, camera, id) {
    const shape = this.shape(tree, folds);
    const unit = shape.places.get(id);
    return unit ? through(focusFit(this.focusBox(tree, folds), shape), camera)(unit) : null;
  }

  /** The layout of a tree; that of a big one that grows may lack its newest nodes for a moment. */
  shape(tree, folds) {
    const known = this.shapes.get(tree);
    if (known?.size === tree.nodes.size) return known.shape;
    const began = performance.now();
    if (known && tree.nodes.size > SMALL_TREE && began - known.at < Math.max(LEAST_REST_MS, REST * known.cost)) {
      this.late = true;
      return known.shape;
    }
    const shape = layout(tree.nodes.values(), folds.get(tree.id));
    const at = performance.now();
    this.shapes.set(tree, { size: tree.nodes.size, shape, at, cost: at - began });
    return shape;
  }

  /** To be called when nodes of a tree were folded away or out. */
  forget(tree) {
    this.shapes.delete(tree);
  }

  #context(width, height) {
    const ratio = window.devicePixelRatio || 1;
    const { canvas } = this;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  /** What lies at a point of the canvas: {tree, node, x, y, r}, `node` null within a tile; or null. */
  at(x, y, reach) {
    let best = null;
    let least = Infinity;
    for (const spot of this.spots) {
      const away = Math.hypot(spot.x - x, spot.y - y) - spot.r;
      if (away < least) [best, least] = [spot, away];
    }
    const inside = (t) => x >= t.x && x <= t.x + t.width && y >= t.y && y <= t.y + t.height;
    const tile = this.tiles.find(inside);
    if (best && least <= reach && (!tile || tile.tree === best.tree)) return best;
    return tile ? { tree: tile.tree, node: null, x, y, r: 8 } : null;
  }
}
