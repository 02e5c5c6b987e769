/**
 * The forest on the page: small multiples of one step's trees, or one tree in focus, which can be
 * zoomed, moved and folded.
 *
 * Invariant: focus and selection are ids; their tree and node are looked up in every state that
 * is shown, so that an earlier state shows only what it holds.
 *
 * Draws only when something changed: new events, the pointer, the theme, the size, or the pulse
 * of an open node (20 times a second at most, never with reduced motion or in a huge forest).
 */

import { HOME, panned, revealing, through, zoomed } from "./camera.js";
import { describe, describeTree, telling } from "./describe.js";
import { forestSteps, treesOf } from "./fold.js";
import { focusFit, lookup, paintFocus, paintTile } from "./forest-paint.js";
import { listenToPointer } from "./forest-pointer.js";
import { grid, layout, neighbour } from "./layout.js";
import { descendants } from "./lineage.js";
import { readPalette } from "./marks.js";

const PULSE_MS = 50;
const PULSE_PERIOD_MS = 1400;
const CALM_ABOVE = 1500; // nodes on the stage; beyond it open nodes do not pulse
const SMALL_TILES = { least: 98, ratio: 0.86 };
const NARROW = 520; // px of a stage that shows smaller tiles
const FOCUS_GAP = 12; // px between the tree in focus and the others below it
const POINTER_REACH = 7; // px around a node that still hit it
const ZOOM_STEP = 1.5;
const PAN_STEP = 60; // px

export class Forest {
  /** @param parts {stage, canvas, tip, onSelect(tree, node), onFocus(tree), onView()} */
  constructor(parts) {
    Object.assign(this, parts);
    this.palette = readPalette();
    this.shapes = new WeakMap();
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.step = null; // null follows the newest step
    this.colour = "score";
    this.follows = false;
    this.focus = null;
    this.selected = null;
    this.over = null;
    this.camera = HOME;
    this.folds = new Map(); // tree id -> ids of folded nodes
    this.spots = [];
    this.tiles = [];
    this.agents = [];
    this.trees = []; // of the step that is shown
    this.shown = []; // those of them that have a node that was asked for
    this.matched = null; // Map(tree id -> ids) of the nodes that were asked for; null: all
    this.#listen();
  }

  /**
   * Takes a state of the fold; `agents` are {name, position, shape, hue}.
   *
   * @param past the state is an earlier one: what it does not hold is not shown.
   */
  show(state, agents, past = false) {
    this.agents = agents;
    const steps = forestSteps(state);
    // A tree in focus stays among those of its own step for as long as they are kept.
    const wanted = this.focus?.step ?? this.step;
    const step = steps.includes(wanted) ? wanted : (steps[0] ?? null);
    this.trees = step === null ? [] : treesOf(state, step);
    if (this.focus) this.#resolve(state, past);
    if (this.follows && this.focus) this.#follow();
    this.dirty();
  }

  /** Of the trees shown, those with a node that was asked for; `matched` as in `filters.found`. */
  setMatched(matched) {
    this.matched = matched;
    this.shown = matched ? this.trees.filter((tree) => matched.has(tree.id)) : this.trees;
    this.dirty();
  }

  #resolve(state, past) {
    // After a reset, or at another moment, the same tree is another object.
    const tree = state.trees.get(this.focus.id);
    if (!tree && past) {
      const { id, step, problem, statement, difficulty } = this.focus;
      this.focus = { id, step, problem, statement, difficulty, nodes: new Map(), closed: false, solved: false };
    } else this.focus = tree ?? this.focus;
    const node = this.selected && this.focus.nodes.get(this.selected.id);
    this.hidden = this.selected && !node && past;
    if (node) this.selected = node;
  }

  /** The node whose panel is open; null where the moment that is shown does not know it yet. */
  get open() {
    return this.hidden ? null : this.selected;
  }

  followStep(step) {
    this.step = step;
    this.setFocus(null);
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
    const box = this.#focusBox(this.stage.clientWidth);
    const chosen = this.spots.find(({ node }) => node === this.open);
    const about = chosen ?? { x: box.width / 2, y: box.height / 2 };
    this.camera = zoomed(this.camera, factor, x ?? about.x, y ?? about.y);
    if (this.camera !== HOME) this.camera = panned(this.camera, 0, 0, box);
    this.#viewed();
  }

  panBy(dx, dy) {
    if (!this.focus || this.camera.k === 1) return;
    this.camera = panned(this.camera, dx, dy, this.#focusBox(this.stage.clientWidth));
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

  #viewed() {
    this.tip.hidden = true;
    this.onView();
    this.dirty();
  }

  #follow() {
    const newest = [...this.focus.nodes.values()].at(-1);
    if (!newest || newest.id === this.followed) return;
    this.followed = newest.id;
    if (this.camera.k > 1) this.#reveal(newest);
  }

  #reveal(node) {
    const box = this.#focusBox(this.stage.clientWidth);
    const shape = this.#shape(this.focus);
    const unit = shape.places.get(node.id);
    if (!unit) return;
    this.camera = revealing(this.camera, through(focusFit(box, shape), this.camera)(unit), box);
  }

  /** Folds what hangs below a node away, or out again. */
  toggleFold(tree, node) {
    const folded = this.folds.get(tree.id) ?? new Set();
    if (!folded.delete(node.id) && descendants(tree, node.id).size) folded.add(node.id);
    this.folds.set(tree.id, folded);
    this.shapes.delete(tree);
    this.onSelect(this.focus, this.selected);
    this.dirty();
  }

  #unfoldTo(tree, node) {
    const folded = this.folds.get(tree.id);
    if (!folded?.size) return;
    for (let at = tree.nodes.get(node.parent); at; at = tree.nodes.get(at.parent)) {
      if (folded.delete(at.id)) this.shapes.delete(tree);
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
    const width = this.stage.clientWidth;
    if (!width) return;
    const stage = this.focus ? this.#focusBox(width) : null;
    const plan = grid(this.shown.length, width, stage || width < NARROW ? SMALL_TILES : {});
    const top = stage ? stage.height + FOCUS_GAP : 0;
    const context = this.#canvas(width, Math.max(90, top + plan.height));
    const { palette } = this;
    const lookOf = lookup(this.agents, palette, this.colour);
    const picture = { palette, lookOf, selected: this.open };
    picture.pulse = this.still.matches ? 0.35 : (now % PULSE_PERIOD_MS) / PULSE_PERIOD_MS;
    this.spots = stage ? this.#paintFocus(context, stage, picture) : [];
    this.tiles = plan.tiles.map((box, index) => ({
      ...box,
      y: box.y + top,
      tree: this.shown[index],
      number: this.trees.indexOf(this.shown[index]) + 1,
    }));
    this.#paintTiles(context, picture);
    this.canvas.dataset.nodes = this.shown.reduce((sum, tree) => sum + tree.nodes.size, 0);
    this.#pulseAgain();
  }

  #paintFocus(context, stage, picture) {
    const { focus: tree } = this;
    const folded = new Map();
    for (const id of this.folds.get(tree.id) ?? []) folded.set(id, descendants(tree, id).size);
    const view = { ...picture, camera: this.camera, folded, matched: this.#matchedIn(tree) };
    return paintFocus(context, stage, tree, this.#shape(tree), view);
  }

  #paintTiles(context, picture) {
    const top = this.canvas.getBoundingClientRect().top;
    for (const tile of this.tiles) {
      // Tiles far from the screen wait until they are scrolled to.
      const from = top + tile.y;
      if (from > innerHeight + 300 || from + tile.height < -300) continue;
      const over = this.over?.tree === tile.tree || this.focus === tile.tree;
      const { tree, number } = tile;
      const view = { ...picture, over, number, matched: this.#matchedIn(tree) };
      this.spots.push(...paintTile(context, tile, tree, this.#shape(tree), view));
    }
  }

  #matchedIn(tree) {
    return this.matched && (this.matched.get(tree.id) ?? new Set());
  }

  #focusBox(width) {
    const { height } = this.#shape(this.focus);
    const tall = Math.max(280, Math.min(640, 110 + Math.max(2, height) * 80));
    return { x: 0, y: 0, width, height: tall };
  }

  #shape(tree) {
    const known = this.shapes.get(tree);
    if (known?.size === tree.nodes.size) return known.shape;
    const shape = layout(tree.nodes.values(), this.folds.get(tree.id));
    this.shapes.set(tree, { size: tree.nodes.size, shape });
    return shape;
  }

  #canvas(width, height) {
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

  #pulseAgain() {
    clearTimeout(this.pulse);
    if (this.still.matches || document.hidden || this.spots.length > CALM_ABOVE) return;
    if (this.spots.some(({ node }) => !node.closed)) {
      this.pulse = setTimeout(() => this.dirty(), PULSE_MS);
    }
  }

  // Pointer and keys

  #listen() {
    const { canvas, stage } = this;
    listenToPointer(canvas, {
      at: (x, y) => this.#at(x, y),
      point: (spot) => this.#point(spot),
      leave: () => this.#leave(),
      pick: (spot) => this.#pick(spot),
      drag: (dx, dy) => this.panBy(dx, dy),
      zoom: (factor, x, y) => this.zoomBy(factor, x, y),
      inFocus: (x, y) => Boolean(this.focus) && y <= this.#focusBox(stage.clientWidth).height,
    });
    stage.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.dirty()).observe(stage);
    addEventListener("scroll", () => this.dirty(), { passive: true });
  }

  #at(x, y) {
    let best = null;
    let least = Infinity;
    for (const spot of this.spots) {
      const away = Math.hypot(spot.x - x, spot.y - y) - spot.r;
      if (away < least) [best, least] = [spot, away];
    }
    const inside = (t) => x >= t.x && x <= t.x + t.width && y >= t.y && y <= t.y + t.height;
    const tile = this.tiles.find(inside);
    if (best && least <= POINTER_REACH && (!tile || tile.tree === best.tree)) return best;
    return tile ? { tree: tile.tree, node: null, x, y, r: 8 } : null;
  }

  #point(spot) {
    const same = spot?.tree === this.over?.tree && spot?.node === this.over?.node;
    if (same && spot?.node !== null) return;
    this.over = spot;
    this.canvas.toggleAttribute("data-over", Boolean(spot));
    this.#tell(spot);
    if (!same) this.dirty();
  }

  #leave() {
    this.over = null;
    this.tip.hidden = true;
    this.dirty();
  }

  #pick(spot) {
    if (spot) this.setFocus(spot.tree, spot.node ?? telling(spot.tree));
    else if (this.focus) this.setFocus(this.focus, null);
  }

  #tell(spot) {
    this.tip.hidden = !spot;
    if (!spot) return;
    const { tree, node } = spot;
    this.tip.textContent = node ? describe(node) : describeTree(tree);
    const left = Math.min(spot.x + spot.r + 8, this.stage.clientWidth - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${spot.y + spot.r + 8}px`;
  }

  #key(event) {
    const { key, shiftKey } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pan = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
    if (key === "Escape" && this.focus) this.setFocus(this.selected ? this.focus : null);
    else if (pan && shiftKey) this.panBy(pan[0] * PAN_STEP, pan[1] * PAN_STEP);
    else if (pan) this.#walk(key);
    else if (key === "Enter" && !this.focus && this.shown.length) {
      this.setFocus(this.shown[0], telling(this.shown[0]));
    } else if (key === "+" || key === "=") this.zoomBy(ZOOM_STEP);
    else if (key === "-") this.zoomBy(1 / ZOOM_STEP);
    else if (key === "0") this.fit();
    else if (key === "c" && this.open) this.toggleFold(this.focus, this.selected);
    else return;
    event.preventDefault();
  }

  #walk(key) {
    const tree = this.focus ?? this.shown[0];
    if (!tree?.nodes.size) return;
    const next = neighbour(tree.nodes, this.open?.id ?? null, key);
    if (this.open && next === this.open.id && /Left|Right/.test(key)) {
      const place = this.shown.indexOf(tree) + (key === "ArrowRight" ? 1 : -1);
      const beside = this.shown[place];
      if (beside) this.setFocus(beside, telling(beside));
    } else this.setFocus(tree, tree.nodes.get(next));
  }
}
