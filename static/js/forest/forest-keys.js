/** Keyboard control of the forest: walk over a tree, zoom and pan it, fold, and go back. */

import { defaultNode } from "./describe.js";
import { neighbour } from "./layout.js";

const ZOOM_STEP = 1.5;
const PAN_STEP = 60; // px
const PAN_DIRECTIONS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** @param forest a `Forest`. */
export function listenToKeys(stage, forest) {
  stage.addEventListener("keydown", (event) => {
    const { key, shiftKey } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = PAN_DIRECTIONS[key];
    if (key === "Escape" && forest.focus) forest.setFocus(forest.selected ? forest.focus : null);
    else if (direction && shiftKey) forest.panBy(direction[0] * PAN_STEP, direction[1] * PAN_STEP);
    else if (direction) walk(forest, key);
    else if (key === "Enter" && !forest.focus && forest.shown.length) {
      forest.setFocus(forest.shown[0], defaultNode(forest.shown[0]));
    } else if (key === "+" || key === "=") forest.zoomBy(ZOOM_STEP);
    else if (key === "-") forest.zoomBy(1 / ZOOM_STEP);
    else if (key === "0") forest.fit();
    else if (key === "c" && forest.open) forest.toggleFold(forest.focus, forest.selected);
    else return;
    event.preventDefault();
  });
}

function walk(forest, key) {
  const tree = forest.focus ?? forest.shown[0];
  if (!tree?.nodes.size) return;
  const next = neighbour(tree.nodes, forest.open?.id ?? null, key);
  if (forest.open && next === forest.open.id && /Left|Right/.test(key)) {
    const index = forest.shown.indexOf(tree) + (key === "ArrowRight" ? 1 : -1);
    const adjacent = forest.shown[index];
    if (adjacent) forest.setFocus(adjacent, defaultNode(adjacent));
  } else forest.setFocus(tree, tree.nodes.get(next));
}
