/** A page with work in progress: shows its progress, and reloads the whole page once it is done. */

import { setText } from "../lib/dom.js";
import { ErrorNote, fetchOk } from "../lib/error-note.js";
import { loadError } from "../lib/load-error.js";

const POLL_MS = 1500;
const host = document.querySelector("[data-report]");
const bar = host.querySelector("progress");
const progressText = host.querySelector('[data-part="progressText"]');
const errorNote = new ErrorNote(() => host, "Progress could not be loaded.");

let timer = null;

async function poll() {
  clearTimeout(timer); // "Try again" starts no second sequence of requests
  try {
    const report = await (await fetchOk(host.dataset.report)).json();
    errorNote.hide();
    if (report.state === "done" || report.state === "failed") {
      location.reload();
      return;
    }
    if (report.state === "running" && bar) {
      bar.value = report.done;
      setText(progressText, `${report.done} of ${report.total} problems checked.`);
    }
  } catch (error) {
    const { text, final } = loadError(error);
    errorNote.show(text, poll);
    if (final) return;
  }
  clearTimeout(timer);
  timer = setTimeout(poll, POLL_MS);
}

setTimeout(poll, POLL_MS);
