/**
 * The log of a run: lines of the requested levels and words, newest last, followed as it grows.
 *
 * The address holds the query. Polls add only lines after the newest one shown; older ones load on
 * request. Until the first response the page says that it loads; a failure is shown with its
 * remedy, and a final one is not retried automatically.
 */

import { element, setText } from "../lib/dom.js";
import { clock } from "../lib/format.js";
import { loadError } from "../lib/load-error.js";
import { browser, hasEnded } from "../stream/stream.js";

const EVERY_MS = 2_000;
const PAGE = 200;

const host = document.querySelector('[data-part="log"]');
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const form = document.querySelector('[data-part="query"]');
let older = null;
let newest = 0;
let request = 0;
let follows = true;
let ended = false; // the run
let isFinal = false; // an automatic retry would not help

function readQuery() {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) fields.append(name, value);
  return fields;
}

async function load(before) {
  const fields = readQuery();
  fields.set("limit", PAGE);
  if (before) fields.set("cursor", before);
  const page = await browser.load(`${host.dataset.url}?${fields}`);
  ended = hasEnded(page.state);
  return page;
}

function lineOf({ time, level, message }) {
  const date = Date.parse(time);
  return element(
    "div",
    { class: `level-${level}` },
    element("time", { datetime: time, title: new Date(date).toLocaleString() }, clock(date)),
    ` ${level} ${message}`,
  );
}

/** Reloads all lines: the query has changed. */
async function start() {
  const current = (request += 1);
  showLoading(true);
  const { lines, next } = await load(null);
  if (current !== request) return;
  showLoading(false);
  host.replaceChildren(...lines.reverse().map(lineOf));
  newest = lines.at(-1)?.seq ?? 0;
  showOlder(next);
  host.scrollTop = host.scrollHeight;
}

/** Appends lines that are new; reloads all if they fill a page. */
async function grow() {
  const current = request;
  const { lines } = await load(null);
  if (current !== request) return;
  const fresh = lines.filter((line) => line.seq > newest);
  if (fresh.length === PAGE) return start();
  host.append(...fresh.reverse().map(lineOf));
  newest = fresh.at(-1)?.seq ?? newest;
  showOlder(older);
  if (follows && fresh.length) host.scrollTop = host.scrollHeight;
}

async function earlier() {
  const current = request;
  const { lines, next } = await load(older);
  if (current !== request) return;
  const height = host.scrollHeight;
  host.prepend(...lines.reverse().map(lineOf));
  host.scrollTop += host.scrollHeight - height;
  showOlder(next);
}

function showOlder(next) {
  older = next;
  part("older").hidden = !older;
  part("none").hidden = host.children.length > 0;
  setText(part("none"), readQuery().size ? "No matching lines." : "No log lines yet.");
}

function showLoading(is) {
  host.setAttribute("aria-busy", String(is));
  part("loading").hidden = !is || host.children.length > 0;
  if (is) part("none").hidden = true;
}

async function attempt(action) {
  try {
    await action();
    isFinal = false;
    part("error").hidden = true;
    showState(...(ended ? ["ended", "ended"] : ["live", "live"]));
  } catch (error) {
    console.warn("grove log:", error.message);
    const { text, final } = loadError(error);
    isFinal = final;
    showLoading(false);
    part("error").hidden = false;
    setText(part("errorText"), text);
    showState("stale", final ? "not available" : "reconnecting");
  }
}

function nextAction() {
  return newest || host.children.length ? grow : start;
}

function showState(kind, text) {
  part("stream").dataset.kind = kind;
  setText(part("stream"), text);
}

async function tick() {
  if (!document.hidden && !isFinal) await attempt(nextAction());
  setTimeout(tick, EVERY_MS);
}

function queryChanged() {
  const fields = readQuery();
  history.replaceState(null, "", `${location.pathname}${fields.size ? `?${fields}` : ""}`);
  attempt(start);
}

const given = new URLSearchParams(location.search);
form.elements.q.value = given.get("q") ?? "";
for (const box of form.querySelectorAll('[name="level"]')) box.checked = given.getAll("level").includes(box.value);
form.addEventListener("input", queryChanged);
form.addEventListener("submit", (event) => event.preventDefault());
part("older").addEventListener("click", () => attempt(earlier));
part("retry").addEventListener("click", () => attempt(nextAction()));
part("follow").addEventListener("click", ({ currentTarget }) => {
  follows = !follows;
  currentTarget.setAttribute("aria-pressed", String(follows));
  if (follows) host.scrollTop = host.scrollHeight;
});
tick();
