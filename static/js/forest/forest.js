/**
 * The forest on the page: small multiples of trees, or one tree in focus, which can be zoomed,
 * panned and folded.
 *
 * Invariant: focus and selection are ids; their tree and node are looked up in every state that
 * is shown, so that an earlier state shows only what it holds.
 *
 * Draws only after a change: new events, the pointer, the theme, the size, or the pulse of an
 * open node (at most 20 times a second, never with reduced motion or in a huge forest).
 */
import { HOME, panned, revealing, zoomed } from "./camera.js";
import { describe, describeTree, defaultNode } from "./describe.js";
import { listenToKeys } from "./forest-keys.js";
import { listenToPointer } from "./forest-pointer.js";
import { ForestStage } from "./forest-stage.js";
import { setText } from "../lib/dom.js";
import { descendants, pathTo } from "../run/lineage.js";
import { readPalette } from "./marks.js";
import { lookup } from "../node/node-look.js";

const PULSE_MS = 50;
const PULSE_PERIOD_MS = 1400;
const LATE_MS = 60; // delay before repainting after a stale tile
const POINTER_REACH = 7; // px around a node that still hit it

export class Forest {
  /** @param parts {stage, canvas, tip, onSelect(tree, node), onFocus(tree), onView()} */
  constructor(parts) {
    Object.assign(this, parts);
    this.palette = readPalette();
    this.painter = new ForestStage(this.stage, this.canvas);
    this.reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
    this.colour = "score";
    this.follows = false;
    this.focus = null;
    this.selected = null;
    this.over = null;
    this.camera = HOME;
    this.folds = new Map(); // tree id -> ids of folded nodes
    this.agents = [];
    this.trees = []; // trees in view
    this.shown = []; // those of them with a matching node
    this.matched = null; // Map(tree id -> ids) of the matching nodes; null: all
    this.query = ""; // as text
    this.#listen();
  }

  /**
   * Sets the trees to show; `treeOf(id)` looks up a tree of the current state, `agents` are {name,
   * position, shape, hue}.
   *
   * @param past whether the state is an earlier one: nodes that it lacks are not shown.
   */
  show(trees, treeOf, agents, past = false) {
    this.agents = agents;
    this.trees = trees;
    if (this.focus) this.#resolve(treeOf, past);
    if (this.follows && this.focus) this.#follow();
    this.dirty();
  }

  /** Shows only trees with a matching node; `matched` as in `filters.findMatches`, `query` is its text. */
  setMatched(matched, query) {
    this.matched = matched;
    this.query = query;
    this.shown = matched ? this.trees.filter((tree) => matched.has(tree.id)) : this.trees;
    this.dirty();
  }

  #resolve(treeOf, past) {
    // After a reset, or at another event, the same tree is another object.
    const tree = treeOf(this.focus.id);
    if (!tree && past) {
      const { id, step, problem, statement, difficulty } = this.focus;
      this.focus = { id, step, problem, statement, difficulty, nodes: new Map(), closed: false, solved: false };
    } else this.focus = tree ?? this.focus;
    const node = this.selected && this.focus.nodes.get(this.selected.id);
    this.hidden = this.selected && !node && past;
    if (node) this.selected = node;
  }

  /** The node whose panel is open; null if the state that is shown lacks it. */
  get open() {
    return this.hidden ? null : this.selected;
  }

  setFocus(tree, node = null) {
    const changed = this.focus?.id !== tree?.id;
    this.focus = tree;
    this.selected = node;
    this.hidden = false;
    this.over = null;
    this.tip.hidden = true;
    if (changed) this.camera = HOME;
    if (changed) this.onFocus(tree);
    if (node) this.#unfoldTo(tree, node);
    if (node && this.camera.k > 1) this.#reveal(node);
    this.onSelect(tree, node);
    this.dirty();
  }

  themeChanged() {
    this.palette = readPalette();
    this.dirty();
  }

  setColour(colour) {
    this.colour = colour;
    this.dirty();
  }

  // The view of the tree in focus

  zoomBy(factor, x, y) {
    if (!this.focus) return;
    const box = this.#box();
    const chosen = this.open && this.painter.drawnPositionOf(this.open);
    const about = chosen ?? { x: box.width / 2, y: box.height / 2 };
    this.camera = zoomed(this.camera, factor, x ?? about.x, y ?? about.y);
    if (this.camera !== HOME) this.camera = panned(this.camera, 0, 0, box);
    this.#viewed();
  }

  panBy(dx, dy) {
    if (!this.focus || this.camera.k === 1) return;
    this.camera = panned(this.camera, dx, dy, this.#box());
    this.#viewed();
  }

  fit() {
    this.camera = HOME;
    this.#viewed();
  }

  setFollows(follows) {
    this.follows = follows;
    if (follows && this.focus) this.#follow();
    this.#viewed();
  }

  #box() {
    return this.painter.focusBox(this.focus, this.folds);
  }

  #viewed() {
    this.tip.hidden = true;
    this.onView();
    this.dirty();
  }

  #follow() {
    const newest = [...this.focus.nodes.values()].at(-1);
    if (!newest || newest.id === this.followedNode) return;
    this.followedNode = newest.id;
    if (this.camera.k > 1) this.#reveal(newest);
  }

  #reveal(node) {
    const position = this.painter.positionOf(this.focus, this.folds, this.camera, node.id);
    if (position) this.camera = revealing(this.camera, position, this.#box());
  }

  /** Folds or unfolds the descendants of a node. */
  toggleFold(tree, node) {
    const folded = this.folds.get(tree.id) ?? new Set();
    if (!folded.delete(node.id) && descendants(tree, node.id).size) folded.add(node.id);
    this.folds.set(tree.id, folded);
    this.painter.discardLayout(tree);
    this.onSelect(this.focus, this.selected);
    this.dirty();
  }

  #unfoldTo(tree, node) {
    const folded = this.folds.get(tree.id);
    if (!folded?.size) return;
    for (const above of pathTo(tree, node)) {
      if (above !== node && folded.delete(above.id)) this.painter.discardLayout(tree);
    }
  }

  // Drawing

  dirty() {
    if (this.frame) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = null;
      this.#paint(now);
    });
  }

  #paint(now) {
    const { trees, shown, focus, camera, folds, query, open, over, palette, colour } = this;
    const pulse = this.reducedMotion.matches ? 0.35 : (now % PULSE_PERIOD_MS) / PULSE_PERIOD_MS;
    const lookOf = lookup(this.agents, palette, colour);
    const matchedIn = (tree) => this.matched && (this.matched.get(tree.id) ?? new Set());
    this.painter.paint({ trees, shown, focus, camera, folds, query, open, over, palette, colour, pulse, lookOf, matchedIn });
    this.#paintAgain();
  }

  /** Schedules a repaint while a tile is stale or an open node pulses. */
  #paintAgain() {
    clearTimeout(this.again);
    const { late, many } = this.painter;
    if (late) this.again = setTimeout(() => this.dirty(), LATE_MS);
    else if (this.reducedMotion.matches || document.hidden || many) return;
    else if (this.painter.hasOpenNodes) this.again = setTimeout(() => this.dirty(), PULSE_MS);
  }

  // Pointer and keys

  #listen() {
    const { canvas, stage, painter } = this;
    listenToPointer(canvas, {
      at: (x, y) => painter.at(x, y, POINTER_REACH),
      point: (hit) => this.#point(hit),
      leave: () => this.#leave(),
      pick: (hit) => this.#pick(hit),
      drag: (dx, dy) => this.panBy(dx, dy),
      zoom: (factor, x, y) => this.zoomBy(factor, x, y),
      inFocus: (x, y) => Boolean(this.focus) && y <= this.#box().height,
    });
    listenToKeys(stage, this);
    new ResizeObserver(() => this.dirty()).observe(stage);
    const scrolled = () => {
      painter.scrolled();
      this.dirty();
    };
    addEventListener("scroll", scrolled, { passive: true });
  }

  #point(hit) {
    const same = hit?.tree === this.over?.tree && hit?.node === this.over?.node;
    if (same && hit?.node !== null) return;
    this.over = hit;
    this.canvas.toggleAttribute("data-over", Boolean(hit));
    this.#showTip(hit);
    if (!same) this.dirty();
  }

  #leave() {
    this.over = null;
    this.tip.hidden = true;
    this.dirty();
  }

  #pick(hit) {
    if (hit) this.setFocus(hit.tree, hit.node ?? defaultNode(hit.tree));
    else if (this.focus) this.setFocus(this.focus, null);
  }

  #showTip(hit) {
    this.tip.hidden = !hit;
    if (!hit) return;
    const { tree, node } = hit;
    setText(this.tip, node ? describe(node) : describeTree(tree));
    const left = Math.min(hit.x + hit.r + 8, this.stage.clientWidth - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${hit.y + hit.r + 8}px`;
  }
}
