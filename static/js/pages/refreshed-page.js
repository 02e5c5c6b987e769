/**
 * A page whose part `data-refreshed` is fetched again while it has `data-live`; the attribute's value
 * says what may be out of date when that fails. `data-seconds` is the pause between two requests.
 */

import { ErrorNote, fetchOk } from "../lib/error-note.js";
import { loadError } from "../lib/load-error.js";

const PART = "[data-refreshed]";
const part = () => document.querySelector(PART);
const everyMs = 1000 * Number(part().dataset.seconds ?? 4);
const errorNote = new ErrorNote(part, part().dataset.refreshed);
let isFinal = false; // an automatic retry would not help
let isFetching = false;

/** Replaces the part; what a reader opened stays open. */
function replace(shown, fresh) {
  const opened = [...shown.querySelectorAll("details")].map((one) => one.open);
  fresh.querySelectorAll("details").forEach((one, index) => {
    one.open = opened[index] ?? one.open;
  });
  shown.replaceWith(fresh);
}

async function refresh() {
  const shown = part();
  const isRead = shown.contains(document.activeElement) || String(getSelection());
  if (document.hidden || isFinal || isFetching || isRead || !("live" in shown.dataset)) return;
  isFetching = true;
  try {
    const response = await fetchOk(location.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    errorNote.hide();
    replace(shown, page.querySelector(PART));
  } catch (error) {
    const { text, final } = loadError(error);
    isFinal = final;
    errorNote.show(text, () => {
      isFinal = false;
      refresh();
    });
  } finally {
    isFetching = false;
  }
}

setInterval(refresh, everyMs);
document.addEventListener("visibilitychange", refresh);
