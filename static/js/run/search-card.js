/** The card of a search at test time: its budget, the best node so far, and the answer. */

import { element, setText } from "../lib/dom.js";
import { count, percent } from "../lib/format.js";
import { programSection } from "../node/node-code.js";
import { testsSection } from "../node/node-tests.js";
import { hasEnded } from "../stream/stream.js";
import { bestNode } from "./search-model.js";

export class SearchCard {
  /** @param part returns an element by its name; `search` from the page's JSON; `open(tree, node)`. */
  constructor(part, search, open) {
    Object.assign(this, { part, search, open });
    this.shown = "";
    part("answerCopy").addEventListener("click", () => this.#copy());
    part("answerNode").addEventListener("click", () => this.open(this.tree, this.node));
  }

  /** @param state the displayed one; `status` of the run at that moment. */
  show(state, status) {
    const tree = [...state.trees.values()].at(-1);
    const { answer } = state;
    const node = tree && (answer ? tree.nodes.get(answer.node) : bestNode(tree));
    const version = [tree?.id, node?.id, answer?.seq, status.state].join();
    if (version === this.shown) return;
    this.shown = version;
    Object.assign(this, { tree, node });
    setText(this.part("answerTitle"), answer ? titleOf(answer) : node ? "Best so far" : "No answer yet");
    setText(this.part("answerText"), textOf(answer, node, status));
    for (const name of ["answerNode", "answerCopy", "answerFile"]) this.part(name).hidden = !node;
    this.part("answerBody").hidden = !node;
    if (node) this.#program(node);
  }

  #program(node) {
    const { tree } = this;
    const file = this.part("answerFile");
    URL.revokeObjectURL(file.href);
    file.href = URL.createObjectURL(new Blob([`${node.program.trimEnd()}\n`], { type: "text/x-python" }));
    setText(this.part("answerCopy"), "Copy");
    const singleNodeTree = { ...tree, nodes: new Map([[node.id, node]]) };
    this.part("answerBody").replaceChildren(programSection(singleNodeTree, node, "program", () => {}), testsSection(node));
  }

  async #copy() {
    const done = await navigator.clipboard?.writeText(this.node.program).then(() => true, () => false);
    setText(this.part("answerCopy"), done ? "Copied" : "Copying is not allowed");
  }
}

function titleOf({ agent, ended }) {
  if (!agent) return "No answer";
  return ended === "stopped" ? "Answer of a stopped search" : "Answer";
}

const ENDS = {
  solved: "Ended: a program passed all public tests",
  nodes: "Ended: node budget used up",
  tokens: "Ended: token budget used up",
  seconds: "Ended: time limit reached",
  stopped: "Stopped",
  failed: "Search failed",
};

function textOf(answer, node, status) {
  if (answer?.agent) {
    const hidden = answer.private_passed ? "and all private tests" : "but not all private tests";
    const reward = answer.reward === null || answer.reward === undefined ? "" : ` Reward model: ${percent(answer.reward)}.`;
    return (
      `Node ${answer.node} by ${answer.agent} passes ${answer.passed} of ${count(answer.tests, "public test")} ${hidden}.${reward} ` +
      `${ENDS[answer.ended]}. Selection rule: ${answer.rule}.`
    );
  }
  if (answer) return `No program was verified. ${ENDS[answer.ended]}.`;
  if (node) return `Node ${node.id} by ${node.agent} passes ${percent(node.score, 0)} of the public tests so far.`;
  return hasEnded(status.state)
    ? "The search ended before any program was verified."
    : "The best program so far is the answer when the search ends.";
}
