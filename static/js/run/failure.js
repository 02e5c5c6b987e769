/**
 * The failure of a run: its first causal error, where it occurred, and the log around it.
 *
 * `failureOf` is pure; what the log does not record is left out, never guessed.
 */

import { element } from "../lib/dom.js";
import { phaseOf } from "./estimate.js";
import { clock } from "../lib/format.js";

const BEFORE = 6;
const AFTER = 4;

/** Returns {message, traceback, phase, agent, rank, step, lines: [{time, level, message, is}]}. */
export function failureOf(state, message) {
  const { error } = state;
  return {
    message: error?.message ?? message,
    traceback: error?.traceback ?? "",
    phase: error?.phase || phaseOf(state) || null,
    agent: error?.agent || null,
    rank: error?.rank ?? null,
    step: state.steps.at(-1)?.step ?? null,
    lines: around(state.logs, error),
  };
}

/** Returns the log's lines around the error, and the error among them. */
function around(logs, error) {
  if (!logs.length) return []; // the log of a guest, to whom its lines are not shown
  if (!error) return logs.slice(-BEFORE).map((line) => ({ ...line, is: false }));
  const before = logs.filter((line) => line.seq < error.seq).slice(-BEFORE);
  const after = logs.filter((line) => line.seq > error.seq).slice(0, AFTER);
  const at = { time: error.time, level: "error", message: error.message, is: true };
  return [...before, at, ...after].map((line) => ({ is: false, ...line }));
}

/** Returns the panel; `resume` is the form that resumes, or null if the run cannot be resumed. */
export function failurePanel(failure, resumeText, resume) {
  const facts = [
    ["Phase", failure.phase],
    ["Agent", failure.agent],
    ["Rank", failure.rank === null ? null : String(failure.rank)],
    ["Last completed step", failure.step === null ? "none" : String(failure.step)],
  ].filter(([, value]) => value !== null);
  const list = facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value)),
  );
  return element(
    "div",
    { class: "note bad failure", role: "alert" },
    element(
      "div",
      {},
      element("b", {}, "Run failed:"),
      " ",
      element("span", {}, failure.message),
      element("dl", { class: "failure-facts small" }, list),
      failure.lines.length ? logLines(failure.lines) : null,
      failure.traceback ? folded("Traceback", element("pre", {}, failure.traceback)) : null,
      element("p", { class: "small" }, resumeText),
      resume ? resumeButton(resume) : null,
    ),
  );
}

function logLines(lines) {
  const rows = lines.map((line) =>
    element("div", { class: `level-${line.level}${line.is ? " at" : ""}` }, `${clock(line.time)} ${line.message}`),
  );
  return folded("Log around the error", element("div", { class: "log", tabindex: "0" }, rows), true);
}

function folded(title, content, open = false) {
  return element("details", { open }, element("summary", { class: "small" }, title), content);
}

/** Returns a button that submits the page's own form, which carries the required fields. */
function resumeButton(resume) {
  return element(
    "button",
    { class: "button primary", type: "button", onclick: () => resume.requestSubmit() },
    resume.textContent.trim(),
  );
}
