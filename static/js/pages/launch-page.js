/**
 * The page of a new experiment: fields and TOML text hold the same settings, and the server validates
 * them. The text is authoritative; a field writes its line there.
 */

import { AgentList } from "../run/agent-list.js";
import { element, setText } from "../lib/dom.js";
import { startNameBoxes } from "../run/name-boxes.js";
import { lineOf, withLine, withLines } from "../lib/toml-lines.js";

const WAIT_MS = 350;
const PREFLIGHT_MS = 1_500;

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = part("form");
const text = form?.elements.overrides;
const fields = () => [...form.querySelectorAll("[data-path]")];
const agents = form && part("agents") && new AgentList(part, { text: plainText, write });
const syncBoxes = form ? startNameBoxes(form) : () => {};

/** Replaces the text of changes and schedules a check. */
function write(changes) {
  text.value = changes;
  scheduleCheck();
}

let touched = false; // whether the user has changed anything
let newestRequest = 0; // number of the newest request; older responses are not shown
let timer = null;
let preflightTimer = null;
let lines = ""; // the changes as the server formats them

/** Requests validation of the form; the preflight, which costs more, only after a longer pause. */
async function check(preflight = false) {
  const request = ++newestRequest;
  const body = new FormData(form);
  for (const field of fields()) body.delete(field.name);
  if (preflight) body.set("preflight", "1");
  const result = await requestCheck(body).catch(() => null);
  if (request !== newestRequest) return;
  if (result) show(result);
  else showVerdict("warn", "These settings could not be checked: the server is not reachable.");
}

async function requestCheck(body) {
  const response = await fetch(form.dataset.check, { method: "POST", body });
  return response.ok ? response.json() : null;
}

function scheduleCheck() {
  newestRequest += 1; // the pending response belongs to another text
  clearTimeout(timer);
  clearTimeout(preflightTimer);
  timer = setTimeout(check, WAIT_MS);
  preflightTimer = setTimeout(() => check(true), PREFLIGHT_MS);
}

function show(result) {
  lines = result.lines;
  const reasons = new Map(result.problems.map((problem) => [problem.path, problem.reason]));
  if (result.agents) agents?.sync(result.agents);
  if (!result.problems.length) fields().forEach((field) => setField(field, result.changes[field.dataset.path]));
  for (const field of fields()) mark(field, reasons.get(field.dataset.path));
  syncBoxes();
  countChanges();
  agents?.showModels();
  part("start").disabled = false;
  part("whole").hidden = !result.toml;
  setText(part("toml"), result.toml);
  if (result.problems.length) {
    // Before anything was changed, a missing value is no error.
    const [kind, title] = touched ? ["bad", "Invalid settings:"] : ["", "Required before it can start:"];
    showVerdict(kind, title, result.problems.map(problemLine));
    part("preflight").replaceChildren();
  } else {
    const changes = Object.keys(result.changes).length;
    const what = changes ? `${changes} ${changes === 1 ? "setting" : "settings"} changed` : "Default settings";
    const { one } = form.dataset; // run or search
    showVerdict("good", `${what}; ${result.runs} ${result.runs === 1 ? one : `${one}s`} to start.`);
    setText(part("start"), result.runs === 1 ? `Start the ${one}` : `Start ${result.runs} ${one}s`);
    if (result.preflight) showPreflight(result.preflight);
  }
}

function problemLine({ path, reason }) {
  return element("li", {}, element("code", {}, path), ` ${reason}`);
}

function showPreflight(findings) {
  const rows = findings.map(({ what, mark: kind, text: words }) =>
    element("li", { "data-mark": kind }, element("b", {}, what), ` ${words}`),
  );
  part("preflight").replaceChildren(
    element("h3", {}, "Preflight checks"),
    element("ul", { class: "preflight" }, rows),
  );
}

function showVerdict(kind, title, items = []) {
  const note = part("verdict");
  note.hidden = false;
  note.className = `note ${kind}`;
  const list = items.length ? element("ul", { class: "problem-list" }, items) : "";
  note.firstElementChild.replaceChildren(title, list);
}

/** Updates a field from the text's value, unless the field has the focus. */
function setField(field, value) {
  if (field !== document.activeElement) field.value = value ?? field.dataset.base;
}

function mark(field, reason) {
  const row = field.closest(".setting");
  const error = row.querySelector("[data-error]");
  row.toggleAttribute("data-changed", field.value !== field.dataset.base);
  error.hidden = !reason;
  setText(error, reason ?? "");
  if (reason) {
    field.setAttribute("aria-invalid", "true");
    row.closest("details").open = true;
  } else field.removeAttribute("aria-invalid");
}

function countChanges() {
  for (const group of form.querySelectorAll("details.settings")) {
    const changed = group.querySelectorAll("[data-changed]").length;
    setText(group.querySelector('[data-part="changed"]'), changed ? `${changed} changed` : "");
  }
}

/** Returns the text with one setting per line: a table header would capture a line appended to it. */
function plainText() {
  return /^\s*\[/m.test(text.value) ? lines : text.value;
}

function fieldChanged({ target: field }) {
  const { path, kind, base, optional } = field.dataset;
  const same = field.value === base;
  text.value = withLine(plainText(), path, same ? null : lineOf(path, kind, field.value, optional));
  mark(field, null);
  scheduleCheck();
}

function search() {
  const words = part("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let matches = 0;
  for (const group of form.querySelectorAll("details.settings")) {
    const rows = [...group.querySelectorAll(".setting")];
    for (const row of rows) {
      row.hidden = !words.every((word) => row.dataset.words.includes(word));
      if (!row.hidden) matches += 1;
    }
    group.hidden = rows.every((row) => row.hidden);
    if (words.length) group.open = !group.hidden;
  }
  setText(part("matchCount"), words.length ? `${matches} found` : "");
}

function begin() {
  part("searchLabel").hidden = false;
  for (const button of document.querySelectorAll("[data-preset]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      text.value = withLines(plainText(), button.dataset.preset);
      scheduleCheck();
    });
  }
  form.addEventListener("input", (event) => {
    touched ||= event.isTrusted;
    if (event.target.dataset.path) fieldChanged(event);
    else if (event.target.name) scheduleCheck();
  });
  part("search").addEventListener("input", search);
  form.addEventListener("submit", () => {
    // The text holds the values of all fields.
    for (const field of fields()) field.disabled = true;
  });
  addEventListener("pageshow", () => fields().forEach((field) => (field.disabled = false)));
  if (part("recipeForm")) {
    part("take").hidden = true;
    part("recipeForm").addEventListener("change", () => part("recipeForm").submit());
  }
  check(true);
}

if (form) begin();
