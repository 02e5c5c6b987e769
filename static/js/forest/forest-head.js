/** The head of the forest: its title, the choice of steps, and texts for an empty forest. */

import { setText } from "../lib/dom.js";

export class ForestHead {
  /**
   * @param part returns an element by its name; `choose(step)` shows the trees of a step, or with
   *   null those of the newest.
   */
  constructor(part, choose) {
    this.part = part;
    for (const [name, step] of [["current", () => null], ["previous", () => this.previousStep]]) {
      part(name).addEventListener("click", () => choose(step()));
    }
    part("chosen").addEventListener("click", () => choose(this.firstStep));
  }

  /**
   * @param trees those in view; `newest` step (0: none yet); `range` of requested steps, or null;
   *   `full`: there were more nodes than are shown; `focus` the tree in focus, or null;
   *   `emptyText` explains why there are no trees.
   */
  show({ trees, newest, range, full, loading, focus, emptyText }) {
    const { part } = this;
    const steps = trees.map((tree) => tree.step);
    const [first, last] = steps.length ? [steps[0], steps.at(-1)] : [range?.from ?? 0, range?.to ?? 0];
    this.previousStep = (first || newest) - 1;
    this.firstStep = first;
    button(part("previous"), this.previousStep >= 1 ? `Step ${this.previousStep}` : "Previous step", this.previousStep < 1, false);
    button(part("current"), newest ? `Step ${newest}` : "Newest step", !newest, Boolean(newest) && !range);
    part("chosen").hidden = !range;
    if (range) button(part("chosen"), stepRange(range.from, range.to), false, true);
    if (!focus) setText(part("forestTitle"), range ? `Search trees of ${stepRange(first, last).toLowerCase()}` : "Search trees");
    const solved = trees.filter((tree) => tree.solved).length;
    const summary = trees.length ? `${solved} of ${trees.length} solved` : "";
    const notice = loading ? "Loading…" : full ? "Older steps are not shown: limit of 20,000 nodes" : "";
    setText(part("solved"), [summary, notice].filter(Boolean).join(" · "));
    part("noTrees").hidden = trees.length > 0 || Boolean(focus);
    part("stage").hidden = !part("noTrees").hidden;
    setText(part("noTreesTitle"), range ? `No trees in ${stepRange(range.from, range.to).toLowerCase()}` : "No trees yet");
    setText(part("noTreesText"), loading ? "Loading…" : emptyText);
  }
}

function stepRange(from, to) {
  return from === to ? `Step ${from}` : `Steps ${from}–${to}`;
}

function button(host, text, disabled, pressed) {
  setText(host, text);
  host.disabled = disabled;
  host.setAttribute("aria-pressed", String(pressed));
}
