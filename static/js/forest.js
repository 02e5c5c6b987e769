/**
 * The forest on the page: small multiples of one step's trees, or one tree in focus.
 *
 * Draws only when something changed: new events, the pointer, the theme, the size, or the pulse
 * of an open node (20 times a second at most, never with reduced motion or in a huge forest).
 */

import { forestSteps, outcome, treesOf } from "./fold.js";
import { lookup, paintFocus, paintTile } from "./forest-paint.js";
import { count, number, percent, words } from "./format.js";
import { grid, layout, neighbour } from "./layout.js";
import { readPalette } from "./marks.js";

const PULSE_MS = 50;
const PULSE_PERIOD_MS = 1400;
const CALM_ABOVE = 1500; // nodes on the stage; beyond it open nodes do not pulse
const SMALL_TILES = { least: 98, ratio: 0.86 };
const NARROW = 520; // px of a stage that shows smaller tiles
const FOCUS_GAP = 12; // px between the tree in focus and the others below it
const POINTER_REACH = 7; // px around a node that still hit it

export class Forest {
  /** @param parts {stage, canvas, tip, onSelect(tree, node), onFocus(tree)} */
  constructor(parts) {
    Object.assign(this, parts);
    this.palette = readPalette();
    this.shapes = new WeakMap();
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.step = null; // null follows the newest step
    this.focus = null;
    this.selected = null;
    this.over = null;
    this.spots = [];
    this.tiles = [];
    this.agents = [];
    this.trees = [];
    this.#listen();
  }

  /** Takes a state of the fold; `agents` are {name, position, shape, hue}. */
  show(state, agents) {
    this.agents = agents;
    const steps = forestSteps(state);
    // A tree in focus stays among those of its own step for as long as they are kept.
    const wanted = this.focus?.step ?? this.step;
    const step = steps.includes(wanted) ? wanted : (steps[0] ?? null);
    this.trees = step === null ? [] : treesOf(state, step);
    // After a reset the same tree is another object.
    if (this.focus) this.focus = state.trees.get(this.focus.id) ?? this.focus;
    if (this.selected && this.focus) {
      this.selected = this.focus.nodes.get(this.selected.id) ?? this.selected;
    }
    this.dirty();
  }

  followStep(step) {
    this.step = step;
    this.setFocus(null);
  }

  setFocus(tree, node = null) {
    const changed = this.focus !== tree;
    this.focus = tree;
    this.selected = node;
    this.over = null;
    this.tip.hidden = true;
    if (changed) this.onFocus(tree);
    this.onSelect(tree, node);
    this.dirty();
  }

  themeChanged() {
    this.palette = readPalette();
    this.dirty();
  }

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
    const plan = grid(this.trees.length, width, stage || width < NARROW ? SMALL_TILES : {});
    const top = stage ? stage.height + FOCUS_GAP : 0;
    const context = this.#canvas(width, Math.max(90, top + plan.height));
    const { palette } = this;
    const picture = { palette, lookOf: lookup(this.agents, palette), selected: this.selected };
    picture.pulse = this.still.matches ? 0.35 : (now % PULSE_PERIOD_MS) / PULSE_PERIOD_MS;
    this.spots = stage
      ? paintFocus(context, stage, this.focus, this.#shape(this.focus), picture)
      : [];
    this.tiles = plan.tiles.map((box, index) => ({
      ...box,
      y: box.y + top,
      tree: this.trees[index],
      number: index + 1,
    }));
    this.#paintTiles(context, picture);
    this.#pulseAgain();
  }

  #paintTiles(context, picture) {
    const top = this.canvas.getBoundingClientRect().top;
    for (const tile of this.tiles) {
      // Tiles far from the screen wait until they are scrolled to.
      const from = top + tile.y;
      if (from > innerHeight + 300 || from + tile.height < -300) continue;
      const over = this.over?.tree === tile.tree || this.focus === tile.tree;
      const { tree, number } = tile;
      const shape = this.#shape(tree);
      this.spots.push(...paintTile(context, tile, tree, shape, { ...picture, over, number }));
    }
  }

  #focusBox(width) {
    const { height } = this.#shape(this.focus);
    const tall = Math.max(280, Math.min(640, 110 + Math.max(2, height) * 80));
    return { x: 0, y: 0, width, height: tall };
  }

  #shape(tree) {
    const known = this.shapes.get(tree);
    if (known?.size === tree.nodes.size) return known.shape;
    const shape = layout(tree.nodes.values());
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

  #listen() {
    const { canvas, stage } = this;
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerleave", () => this.#leave());
    canvas.addEventListener("click", (event) => this.#click(event));
    stage.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.dirty()).observe(stage);
    addEventListener("scroll", () => this.dirty(), { passive: true });
  }

  #at({ offsetX: x, offsetY: y }) {
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

  #point(event) {
    const spot = this.#at(event);
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

  #click(event) {
    const spot = this.#at(event);
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
    if (event.key === "Escape" && this.focus) {
      this.setFocus(this.selected ? this.focus : null);
    } else if (event.key.startsWith("Arrow")) this.#walk(event.key);
    else if (event.key === "Enter" && !this.focus && this.trees.length) {
      this.setFocus(this.trees[0], telling(this.trees[0]));
    } else return;
    event.preventDefault();
  }

  #walk(key) {
    const tree = this.focus ?? this.trees[0];
    if (!tree?.nodes.size) return;
    const next = neighbour(tree.nodes, this.selected?.id ?? null, key);
    if (this.selected && next === this.selected.id && /Left|Right/.test(key)) {
      const place = this.trees.indexOf(tree) + (key === "ArrowRight" ? 1 : -1);
      const beside = this.trees[place];
      if (beside) this.setFocus(beside, telling(beside));
    } else this.setFocus(tree, tree.nodes.get(next));
  }
}

/** The node to open a tree with: the first that passed, else the newest that is written. */
function telling(tree) {
  const closed = [...tree.nodes.values()].filter((node) => node.closed);
  return closed.find((node) => node.score === 1) ?? closed.at(-1) ?? null;
}

/** One node in one line, for the tooltip and the list. */
export function describe(node) {
  const parts = [`Node ${node.id}`, node.agent, words(outcome(node))];
  if (node.closed && node.score === null) parts[2] = "sandbox failure";
  else if (node.closed) parts.push(`${percent(node.fraction, 0)} of tests`);
  if (node.advantage !== null) parts.push(`advantage ${number(node.advantage)}`);
  return parts.join(" · ");
}

export function describeTree(tree) {
  const end = tree.solved ? "solved" : tree.closed ? "unsolved" : "growing";
  return `${tree.problem} · ${count(tree.nodes.size, "node")} · ${end}`;
}
