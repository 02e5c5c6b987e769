/**
 * The agents of a new experiment as a list: agents are added, removed and restored.
 *
 * Invariant: the text of changes is authoritative. Adding writes `agents.KEY.name` and the values that
 * differ from the defaults, removing deletes the agent's lines and unsets those of the recipe; `sync`
 * updates the list to the agents that the server reads from the text.
 */

import { element, setText } from "../lib/dom.js";
import { lineOf, withLines, withoutAgent } from "../lib/toml-lines.js";

const NAME = /^[a-z][a-z0-9-]{0,39}$/;
const NAMES = ["elm", "ash", "birch", "rowan", "maple", "alder", "yew", "willow", "hazel", "larch"];
const STAND_IN = "new-agent"; // as in webapp/experiments/run_settings/settings_schema.py

export class AgentList {
  /** @param acts {text(), write(text)}: the text of changes, one setting per line. */
  constructor(part, acts) {
    this.acts = acts;
    this.part = part;
    this.host = part("agentList");
    this.removed = new Map(); // key -> its group, for agents of the recipe
    this.own = new Set(this.#groups().map(keyOf));
    part("addAgent").hidden = false;
    part("addAgentButton").addEventListener("click", () => this.#add());
    part("agentName").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // Enter would start the run
      this.#add();
    });
    this.host.addEventListener("click", ({ target }) => {
      if (target.closest("[data-remove]")) this.#remove(keyOf(target.closest("[data-agent]")));
    });
    this.#arranged();
  }

  /** Shows the agents with these keys, in any order. */
  sync(keys) {
    const shown = new Map(this.#groups().map((group) => [keyOf(group), group]));
    for (const [key, group] of shown) if (!keys.includes(key)) this.#takeOut(key, group);
    for (const key of keys) if (!shown.has(key)) this.#putIn(key);
    this.#arranged();
  }

  /** Shows each agent's model next to its name. */
  tell() {
    for (const group of this.#groups()) {
      const model = group.querySelector(`[data-path="agents.${keyOf(group)}.model"]`);
      setText(group.querySelector('[data-part="agentModel"]'), model.value || "no model yet");
    }
  }

  #groups() {
    return [...this.host.querySelectorAll("[data-agent]")];
  }

  #add() {
    const keys = this.#groups().map(keyOf);
    const taken = (name) => keys.includes(name) || this.own.has(name);
    const key = this.part("agentName").value.trim() || NAMES.find((name) => !taken(name));
    const fault = !NAME.test(key ?? "")
      ? "A name has small letters, digits and hyphens, and begins with a letter."
      : taken(key) ? `There is an agent ${key} already${keys.includes(key) ? "" : "; put it back"}.` : "";
    this.part("agentFault").hidden = !fault;
    setText(this.part("agentFault"), fault);
    this.part("agentName").toggleAttribute("aria-invalid", Boolean(fault));
    if (fault) return;
    this.part("agentName").value = "";
    const last = this.#groups().at(-1);
    const group = this.#putIn(key);
    this.acts.write(withLines(this.acts.text(), this.#linesOf(key, group, last)));
    this.#arranged();
    group.querySelector(`[data-path="agents.${key}.model"]`).focus();
  }

  /** Returns the lines of a new agent like another one: its name, and all values but defaults. */
  #linesOf(key, group, like) {
    const lines = [`agents.${key}.name = ${JSON.stringify(key)}`];
    for (const field of like?.querySelectorAll("[data-path]") ?? []) {
      const rest = field.dataset.path.split(".").slice(2).join(".");
      const path = `agents.${key}.${rest}`;
      const mine = group.querySelector(`[data-path="${path}"]`);
      if (rest === "name" || mine?.dataset.base === field.value) continue;
      if (mine) mine.value = field.value;
      const line = lineOf(path, field.dataset.kind, field.value, field.dataset.optional);
      if (line !== null) lines.push(line);
    }
    return lines.join("\n");
  }

  #remove(key) {
    const text = withoutAgent(this.acts.text(), key);
    this.acts.write(this.own.has(key) ? withLines(text, `agents.${key} = unset`) : text);
    this.#takeOut(key, this.#groups().find((group) => keyOf(group) === key));
    this.#arranged();
    this.part("addAgentButton").focus();
  }

  #putBack(key) {
    this.acts.write(withoutAgent(this.acts.text(), key));
    this.#putIn(key).querySelector("summary").focus();
    this.#arranged();
  }

  #takeOut(key, group) {
    group.remove();
    if (this.own.has(key)) this.removed.set(key, group);
  }

  #putIn(key) {
    const group = this.removed.get(key) ?? this.#made(key);
    this.removed.delete(key);
    this.host.append(group);
    return group;
  }

  #made(key) {
    const made = this.part("agentTemplate").content.cloneNode(true).querySelector("[data-agent]");
    const walker = document.createTreeWalker(made, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replaceAll(STAND_IN, key);
    for (const node of [made, ...made.querySelectorAll("*")]) {
      for (const { name, value } of [...node.attributes]) if (value.includes(STAND_IN)) node.setAttribute(name, value.replaceAll(STAND_IN, key));
    }
    return made;
  }

  #arranged() {
    const groups = this.#groups();
    for (const group of groups) group.querySelector("[data-remove]").hidden = groups.length < 2;
    setText(this.part("agentsSaid"), `${groups.length} ${groups.length === 1 ? "writes" : "write"} in one tree`);
    const back = this.part("removedAgents");
    back.hidden = !this.removed.size;
    const button = (key) => element("button", { class: "button", type: "button", onclick: () => this.#putBack(key) }, `Restore ${key}`);
    back.replaceChildren("Removed: ", ...[...this.removed.keys()].map(button));
    this.tell();
  }
}

function keyOf(group) {
  return group.dataset.agent;
}
