/** One node in full: prompt and answer, verdicts, credit, and why the search placed it here. */

import { element, setText } from "../lib/dom.js";
import { outcome } from "../stream/fold.js";
import { number, percent, seconds, words } from "../lib/format.js";
import { draftNote } from "../run/drafts.js";
import { childrenOf } from "../run/lineage.js";
import { setDraft } from "../run/writing-card.js";
import { markIcon } from "../forest/marks.js";
import { programSection } from "./node-code.js";
import { creditSection } from "./node-credit.js";
import { testsSection } from "./node-tests.js";
import { NodeText } from "./node-text.js";
import { policyVersions } from "./policy-versions.js";
import { thompsonSection } from "./thompson.js";

const OUTCOMES = {
  open: "in progress",
  passed: "passed all tests",
  partial: "passed some tests",
  failed: "passed no tests",
  failure: "sandbox failure",
};

export class NodePanel {
  /** @param actions {close(), pick(tree, node), collapse(tree, node), toStep(step),
   *   load(tree id, node id), discuss() or null} */
  constructor(host, actions) {
    this.host = host;
    this.actions = actions;
    this.texts = new NodeText(actions.load);
    this.view = "program";
    this.shown = null;
  }

  clear() {
    this.shown = null;
    this.host.hidden = true;
    this.host.replaceChildren();
  }

  /**
   * Shows a node; redraws only if its content changed.
   *
   * @param context {lookOf, palette, state, config, formula, collapsed}: lookOf(node) as in the forest,
   *   the state that the page shows, the run's settings, the ids of collapsed nodes of this tree; and
   *   draft, as `#showDraft` takes it.
   */
  show(tree, node, context) {
    const key = this.#version(tree, node, context);
    if (this.shown === key) {
      this.#showDraft(context.draft);
      return;
    }
    const same = this.shown?.startsWith(`${tree.id},${node.id},`);
    const scrollTop = same ? this.host.scrollTop : 0;
    const focused = same ? this.#focused() : null;
    this.shown = key;
    this.host.hidden = false;
    const choose = (view) => {
      this.view = view;
      this.show(tree, node, context);
    };
    const isOutside = !context.config.credit; // another program's node: an answer with a reward
    this.host.replaceChildren(
      this.#head(node, context, isOutside),
      facts(node, isOutside),
      this.#links(tree, node, context),
      this.#discussion(),
      node.error ? element("section", {}, element("pre", { class: "code" }, node.error)) : "",
      node.closed ? (isOutside ? answerSection(node) : programSection(tree, node, this.view, choose)) : this.#openSection(),
      node.closed && node.tests && !isOutside ? testsSection(node) : "",
      creditSection(tree, node, context, this.actions.toStep),
      thompsonSection(node),
      ...(node.closed ? this.texts.sections(tree, node) : []),
    );
    if (!node.closed) this.#showDraft(context.draft);
    this.host.scrollTop = scrollTop;
    if (focused) this.host.querySelectorAll("button")[focused - 1]?.focus();
  }

  #openSection() {
    this.draftNote = element("p", { class: "muted small" });
    this.draftText = element("pre", { class: "code draft", tabindex: 0, "aria-label": "Text so far", hidden: true });
    this.draftTitle = element("p", { class: "muted" });
    return element("section", {}, this.draftTitle, this.draftNote, this.draftText);
  }

  /** @param draft {draft, streams, quiet} of an open node, or undefined at an earlier event and while
   *  no engine writes. */
  #showDraft(draft) {
    if (!this.draftText?.isConnected) return;
    setText(this.draftTitle, draft ? "In progress: the agent is writing this program." : "Open: this program is not complete.");
    setText(this.draftNote, draft ? draftNote(draft.draft, draft.streams, draft.quiet) : "");
    this.draftText.hidden = !draft?.draft;
    if (draft?.draft) setDraft(this.draftText, draft.draft.text);
  }

  #discussion() {
    if (!this.actions.discuss) return "";
    const attributes = { type: "button", class: "link", onclick: this.actions.discuss };
    return element("section", { class: "small" }, element("button", attributes, "Comments on this node"));
  }

  #version(tree, node, { palette, state, collapsed }) {
    const parent = tree.nodes.get(node.parent);
    const children = childrenOf(tree, node).map((one) => `${one.id}${outcome(one)}`);
    const parts = [tree.id, node.id, node.closed, node.advantage, parent?.closed, children];
    const credit = node.closed ? [tree.nodes.size, tree.closed, state.updates.length, state.checkpoints.length] : [];
    return [...parts, ...credit, collapsed?.has(node.id), palette.text, this.view].join();
  }

  /** Returns the position of the focused button, 1-based, or 0: a redraw keeps the focus there. */
  #focused() {
    return [...this.host.querySelectorAll("button")].indexOf(document.activeElement) + 1;
  }

  #head(node, { lookOf, palette }, isOutside) {
    return element(
      "div",
      { class: "card-head" },
      element(
        "div",
        { class: "panel-title" },
        markIcon(lookOf(node), palette, 30),
        element(
          "div",
          {},
          element("h2", { id: "node-title" }, `Node ${node.id} by ${node.agent || "an agent"}`),
          element("div", { class: "muted small" }, isOutside ? outsideLine(node) : headline(node)),
        ),
      ),
      element("span", { class: "spring" }),
      element(
        "button",
        { type: "button", class: "button icon-button", "aria-label": "Close node", onclick: this.actions.close },
        "✕",
      ),
    );
  }

  /** Links to parent and children, and a button that folds the descendants. */
  #links(tree, node, { collapsed }) {
    const { pick, collapse } = this.actions;
    const parent = tree.nodes.get(node.parent);
    const below = childrenOf(tree, node);
    if (!parent && !below.length) return "";
    const link = (text, one) =>
      element("button", { type: "button", class: "link", onclick: () => pick(tree, one) }, text);
    const fold = () =>
      element(
        "button",
        { type: "button", class: "link", onclick: () => collapse(tree, node) },
        collapsed?.has(node.id) ? "Unfold" : "Collapse",
      );
    const kin = below.slice(0, 24).map((one) => link(`${one.id} ${SIGN[outcome(one)]}`, one));
    return element(
      "section",
      { class: "kin small" },
      parent ? element("span", {}, "Repairs ", link(`node ${parent.id} ${SIGN[outcome(parent)]}`, parent)) : "",
      below.length ? element("span", {}, "Repaired by ", kin, below.length > 24 ? "…" : "", " ", fold()) : "",
    );
  }
}

const SIGN = { open: "…", passed: "✓", partial: "◐", failed: "✗", failure: "⚠" };

function headline(node) {
  const how = node.parent === 0 ? "generated from the problem" : `refines node ${node.parent}`;
  return `${OUTCOMES[outcome(node)]}, ${how}`;
}

function outsideLine(node) {
  return node.parent === 0 ? "an answer to the problem" : `follows node ${node.parent}`;
}

/** An answer of another program's model, which need not be a program. */
function answerSection(node) {
  const body = node.program
    ? element("pre", { class: "prompt", tabindex: 0, role: "group", "aria-label": "Answer" }, node.program)
    : element("p", { class: "muted" }, "The answer is empty.");
  return element("section", {}, element("h3", {}, "Answer"), body);
}

function facts(node, isOutside) {
  const rows = [["Depth", node.depth]];
  if (node.closed && isOutside) {
    rows.push(["Reward", number(node.score)], ["Tokens", node.tokens || null], ["Stop reason", words(node.stop)]);
  } else if (node.closed) {
    rows.push(
      ["Verdict", words(node.verdict)],
      ...(node.noProgram ? [["No program", words(node.noProgram)]] : []),
      ["Score", number(node.score)],
      ["Tests passed", percent(node.fraction, 0)],
      ["Policy version", policyVersions(node)],
      ["Tokens", node.tokens],
      ["Mean log-prob", number(node.meanLogprob)],
      ["Stop reason", words(node.stop)],
      ["Duration", seconds(node.seconds)],
    );
  }
  const cells = rows.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value ?? "–"))),
  );
  return element("section", {}, element("dl", { class: "facts" }, cells));
}
