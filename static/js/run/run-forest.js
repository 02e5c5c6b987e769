/**
 * The trees of the run page and their controls: filters, the open node, the list, the address.
 *
 * Invariant: all of it shows one state, the one last passed to `draw`.
 */

import { Comments } from "./comments.js";
import { setText } from "../lib/dom.js";
import { findMatches, hasFilters, matcher, readFilters, stepsOf } from "./filters.js";
import { ForestHead } from "../forest/forest-head.js";
import { ForestTools } from "../forest/forest-tools.js";
import { Forest } from "../forest/forest.js";
import { drawLegend } from "../forest/legend.js";
import { lookup } from "../node/node-look.js";
import { hasEnded } from "../stream/stream.js";
import { RunAddress } from "./run-address.js";
import { Steps } from "./steps.js";
import { AccessibilityTree } from "../forest/accessibility-tree.js";

export class RunForest {
  /**
   * @param parts {part(name), partsOf(kind)}; `page` is the page's JSON.
   * @param run {machine, loads, live(), shown(), team(), palette(), changed(), draftOf(tree, node)}: the
   *   states of the run, its agents' looks, the callback that requests a redraw, and what an open node
   *   has so far: {draft, streams}.
   */
  constructor({ part, partsOf }, page, run) {
    Object.assign(this, { part, page, run });
    this.noTreesText = part("noTreesText").textContent;
    this.filters = readFilters(new URLSearchParams());
    this.matches = null; // matches, as `filters.findMatches` returns them; null without filters
    this.steps = new Steps({
      load: (step, seq) => run.loads.step(step, seq),
      onChange: () => run.changed(),
      onError: (error) => console.warn("grove: a step's trees cannot be shown:", error.message),
    });
    this.forest = new Forest({
      stage: part("stage"),
      canvas: part("canvas"),
      tip: part("tip"),
      onSelect: () => this.#selected(),
      onFocus: (tree) => this.#focused(tree),
      onView: () => run.changed(),
    });
    const discussed = document.querySelector("[data-comments]"); // guests see none
    this.comments = discussed && new Comments(discussed);
    this.panel = null; // until its scripts are loaded
    this.tools = this.#tools(partsOf("tool"));
    this.list = new AccessibilityTree(part("treeList"), (tree, node) => this.open(tree, node));
    this.head = new ForestHead(part, (step) => {
      this.forest.setFocus(null);
      this.setFilters({ ...this.filters, step: step === null ? "" : String(step) });
    }, () => this.steps.retry());
    this.address = new RunAddress({
      forest: this.forest,
      machine: run.machine,
      loads: run.loads,
      live: run.live,
      shown: run.shown,
      filters: () => this.filters,
      setFilters: (filters) => this.setFilters(filters),
    });
    part("back").addEventListener("click", () => this.forest.setFocus(null));
  }

  /** The trees in view, as `forest.trees`. */
  get trees() {
    return this.forest.trees;
  }

  get focus() {
    return this.forest.focus;
  }

  open(tree, node) {
    this.forest.setFocus(tree, node);
  }

  /** Sets the filters of nodes and steps, as the controls do. */
  setFilters(filters) {
    this.tools.set(filters);
    this.#filter(filters);
  }

  themeChanged() {
    this.forest.themeChanged();
  }

  /** Draws what moves: the trees and the open node. @param status the run's, at that moment. */
  draw(state, status) {
    const { forest, filters, part, page } = this;
    this.address.follow();
    this.#show(state);
    this.matches = hasFilters(filters) ? findMatches(forest.trees, matcher(filters)) : null;
    forest.setMatched(this.matches?.ids ?? null, this.matches ? JSON.stringify(filters) : "");
    const none = page.search ? "The search ended before its first node." : "The run ended before its first step.";
    const emptyText = hasEnded(status.state) ? none : this.noTreesText;
    const { range, full, loading, error } = this.steps;
    this.head.show({ trees: forest.trees, newest: state.step, range, full, loading, focus: forest.focus, emptyText, error });
    part("noMatch").hidden = !this.matches || this.matches.nodes > 0 || !forest.trees.length;
    part("canvas").toggleAttribute("data-drags", forest.camera.k > 1);
    this.#drawPanel(state);
  }

  /** Draws what is read: figures of the tools, the list, the legend. */
  drawWords(state) {
    const { forest, matches } = this;
    const { trees, focus } = forest;
    const nodes = trees.reduce((sum, tree) => sum + tree.nodes.size, 0);
    this.tools.show(matches, { trees: trees.length, nodes }, Boolean(focus));
    this.list.show(state.seq, forest.shown, focus, forest.open, matches?.ids);
    drawLegend(this.part("legend"), this.run.team(), this.run.palette(), forest.colour);
  }

  /** Shows the trees of the requested steps; a tree in focus stays among those of its own step. */
  #show(state) {
    const { forest, filters, steps, run } = this;
    const { focus } = forest;
    const before = focus && !filters.step && state.trees.has(focus.id) && focus.step !== state.step;
    steps.choose(before ? { from: focus.step, to: focus.step } : stepsOf(filters));
    const treeOf = (id) => state.trees.get(id) ?? steps.findTree(id);
    const shown = steps.trees(state);
    forest.show(shown, treeOf, run.team(), run.machine.active);
    if (this.page.search && shown.length && !forest.focus) forest.setFocus(shown[0]); // the only one
  }

  #drawPanel(state) {
    const { focus, open: node, colour, folds } = this.forest;
    this.part("bench").dataset.panel = node && this.panel ? "open" : "closed";
    this.comments?.show(focus?.id ?? null, node?.id ?? null);
    if (!node) this.panel?.clear();
    else if (!this.panel) this.loadPanel();
    if (!node || !this.panel) return;
    const palette = this.run.palette();
    const lookOf = lookup(this.run.team(), palette, colour);
    const draft = this.run.draftOf(focus, node);
    this.panel.show(focus, node, { lookOf, palette, state, config: this.page.config, formula: this.page.formula, collapsed: folds.get(focus.id), draft });
  }

  /** Loads the scripts of the open node, once; the next drawing retries after a failure. */
  loadPanel() {
    this.panelLoad ??= import("../node/node-panel.js").then(
      ({ NodePanel }) => {
        this.panel = this.#panel(NodePanel);
        this.run.changed();
      },
      (error) => {
        this.panelLoad = null;
        console.warn("grove: a node cannot be shown:", error.message);
      },
    );
  }

  #panel(NodePanel) {
    const { forest, comments, run } = this;
    return new NodePanel(this.part("panel"), {
      close: () => forest.setFocus(forest.focus, null),
      pick: (tree, node) => forest.setFocus(tree, node),
      collapse: (tree, node) => forest.toggleFold(tree, node),
      toStep: (step) => this.setFilters({ ...this.filters, step: String(step) }),
      load: (tree, node) => run.loads.node(tree, node),
      discuss: comments && (() => comments.host.scrollIntoView()),
    });
  }

  #tools(controls) {
    const { forest, run } = this;
    const actions = {
      filter: (filters) => this.#filter(filters),
      colour: (name) => {
        forest.setColour(name);
        run.changed();
      },
      zoom: (factor) => forest.zoomBy(factor),
      fit: () => forest.fit(),
      follow: (on) => forest.setFollows(on),
      list: (on) => this.part("treeList").toggleAttribute("data-shown", on),
    };
    return new ForestTools(controls, actions, this.page);
  }

  #filter(filters) {
    this.filters = filters;
    this.address.write();
    this.run.changed();
  }

  #selected() {
    this.address.chosen();
    this.run.changed();
  }

  #focused(tree) {
    const { part, page } = this;
    part("back").hidden = !tree || Boolean(page.search);
    const compare = part("compare"); // guests have no trees to compare with
    if (compare) compare.hidden = !tree;
    const box = part("statement");
    box.hidden = !tree;
    if (!tree) return;
    if (compare) compare.search = new URLSearchParams({ tree: `${page.run.id}:${tree.id}` });
    setText(box, tree.statement);
    setText(part("forestTitle"), `Tree ${tree.id}: ${tree.problem}`);
    // A tree is drawn at the top of the stage, which may be scrolled out of view.
    const stage = part("stage");
    if (stage.getBoundingClientRect().top < 0) stage.scrollIntoView({ block: "start" });
  }
}
