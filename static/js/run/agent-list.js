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
const PLACEHOLDER_KEY = "new-agent"; // as in webapp/experiments/run_settings/settings_schema.py

export class AgentList {
  /** @param actions {text(), write(text)}: the text of changes, one setting per line. */
  constructor(part, actions) {
    this.actions = actions;
    this.part = part;
    this.host = part("agentList");
    this.removed = new Map(); // key -> its group, for agents of the recipe
    this.recipeKeys = new Set(this.#groups().map(keyOf));
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
    this.#update();
  }

  /** Shows the agents with these keys, in any order. */
  sync(keys) {
    const shown = new Map(this.#groups().map((group) => [keyOf(group), group]));
    for (const [key, group] of shown) if (!keys.includes(key)) this.#removeGroup(key, group);
    for (const key of keys) if (!shown.has(key)) this.#addGroup(key);
    this.#update();
  }

  /** Shows each agent's model next to its name. */
  showModels() {
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
    const taken = (name) => keys.includes(name) || this.recipeKeys.has(name);
    const key = this.part("agentName").value.trim() || NAMES.find((name) => !taken(name));
    const error = !NAME.test(key ?? "")
      ? "Use lower-case letters, digits and hyphens, starting with a letter."
      : taken(key) ? `An agent ${key} already exists${keys.includes(key) ? "" : "; restore it"}.` : "";
    this.part("agentError").hidden = !error;
    setText(this.part("agentError"), error);
    this.part("agentName").toggleAttribute("aria-invalid", Boolean(error));
    if (error) return;
    this.part("agentName").value = "";
    const last = this.#groups().at(-1);
    const group = this.#addGroup(key);
    this.actions.write(withLines(this.actions.text(), this.#linesOf(key, group, last)));
    this.#update();
    group.querySelector(`[data-path="agents.${key}.model"]`).focus();
  }

  /** Returns the lines of a new agent like another one: its name, and all values but defaults. */
  #linesOf(key, group, like) {
    const lines = [`agents.${key}.name = ${JSON.stringify(key)}`];
    for (const field of like?.querySelectorAll("[data-path]") ?? []) {
      const setting = field.dataset.path.split(".").slice(2).join(".");
      const path = `agents.${key}.${setting}`;
      const mine = group.querySelector(`[data-path="${path}"]`);
      if (setting === "name" || mine?.dataset.base === field.value) continue;
      if (mine) mine.value = field.value;
      const line = lineOf(path, field.dataset.kind, field.value, field.dataset.optional);
      if (line !== null) lines.push(line);
    }
    return lines.join("\n");
  }

  #remove(key) {
    const text = withoutAgent(this.actions.text(), key);
    this.actions.write(this.recipeKeys.has(key) ? withLines(text, `agents.${key} = unset`) : text);
    this.#removeGroup(key, this.#groups().find((group) => keyOf(group) === key));
    this.#update();
    this.part("addAgentButton").focus();
  }

  #restore(key) {
    this.actions.write(withoutAgent(this.actions.text(), key));
    this.#addGroup(key).querySelector("summary").focus();
    this.#update();
  }

  #removeGroup(key, group) {
    group.remove();
    if (this.recipeKeys.has(key)) this.removed.set(key, group);
  }

  #addGroup(key) {
    const group = this.removed.get(key) ?? this.#buildGroup(key);
    this.removed.delete(key);
    this.host.append(group);
    return group;
  }

  #buildGroup(key) {
    const made = this.part("agentTemplate").content.cloneNode(true).querySelector("[data-agent]");
    const walker = document.createTreeWalker(made, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replaceAll(PLACEHOLDER_KEY, key);
    for (const node of [made, ...made.querySelectorAll("*")]) {
      for (const { name, value } of [...node.attributes]) if (value.includes(PLACEHOLDER_KEY)) node.setAttribute(name, value.replaceAll(PLACEHOLDER_KEY, key));
    }
    return made;
  }

  #update() {
    const groups = this.#groups();
    for (const group of groups) group.querySelector("[data-remove]").hidden = groups.length < 2;
    setText(this.part("agentCount"), `${groups.length} ${groups.length === 1 ? "agent" : "agents"} in one tree`);
    const back = this.part("removedAgents");
    back.hidden = !this.removed.size;
    const button = (key) => element("button", { class: "button", type: "button", onclick: () => this.#restore(key) }, `Restore ${key}`);
    back.replaceChildren("Removed: ", ...[...this.removed.keys()].map(button));
    this.showModels();
  }
}

function keyOf(group) {
  return group.dataset.agent;
}
