/** The head of the forest: its title, the choice of steps, and texts for an empty forest. */

import { element, setText } from "../lib/dom.js";
import { errorText } from "../lib/load-error.js";

export class ForestHead {
  /**
   * @param part returns an element by its name; `choose(step)` shows the trees of a step, or with
   *   null those of the newest; `retry()` requests steps again that could not be loaded.
   */
  constructor(part, choose, retry) {
    this.part = part;
    this.retry = element("button", { class: "button", type: "button", onclick: retry }, "Try again");
    part("noTrees").append(this.retry);
    for (const [name, step] of [["current", () => null], ["previous", () => this.previousStep]]) {
      part(name).addEventListener("click", () => choose(step()));
    }
    part("chosen").addEventListener("click", () => choose(this.firstStep));
  }

  /**
   * @param trees those in view; `newest` step (0: none yet); `range` of requested steps, or null;
   *   `full`: there were more nodes than are shown; `focus` the tree in focus, or null;
   *   `emptyText` explains why there are no trees; `error` of steps that could not be
   *   loaded, or null.
   */
  show({ trees, newest, range, full, loading, focus, emptyText, error }) {
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
    const notice = loading ? "Loading…" : error ? "Some steps could not be loaded" : full ? "Older steps are not shown: limit of 20,000 nodes" : "";
    setText(part("solved"), [summary, notice].filter(Boolean).join(" · "));
    part("noTrees").hidden = trees.length > 0 || Boolean(focus);
    part("stage").hidden = !part("noTrees").hidden;
    const shownSteps = range && stepRange(range.from, range.to).toLowerCase();
    setText(part("noTreesTitle"), error ? `Trees of ${shownSteps} could not be loaded` : range ? `No trees in ${shownSteps}` : "No trees yet");
    setText(part("noTreesText"), loading ? "Loading…" : error ? errorText(error.status) : emptyText);
    this.retry.hidden = !error || Boolean(loading);
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
