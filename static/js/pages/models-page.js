/** The models: shows the progress of open imports, and reloads the page once one has ended. */

import { setText } from "../lib/dom.js";
import { ErrorNote, fetchOk } from "../lib/error-note.js";
import { loadError } from "../lib/load-error.js";

const POLL_MS = 1500;
const imports = document.querySelector("#imports");
const errorNote = new ErrorNote(() => imports, "Progress could not be loaded.");

/** Shows the state of an import in its row; returns whether it has ended. */
async function update(row) {
  const one = await (await fetchOk(row.dataset.import)).json();
  if (one.state !== "queued" && one.state !== "running") return true;
  const running = one.state === "running";
  const pill = row.querySelector('[data-part="state"]');
  setText(pill, running ? "Running" : "Queued");
  pill.dataset.colour = running ? "blue" : "grey";
  setText(row.querySelector('[data-part="phase"]'), running ? one.phase : "Waiting for a worker");
  row.querySelector("progress").value = one.progress;
  return false;
}

let timer = null;

async function poll() {
  clearTimeout(timer); // "Try again" starts no second sequence of requests
  const rows = [...imports.querySelectorAll("[data-import]")];
  if (!rows.length) return;
  if (!document.hidden) {
    try {
      const ended = await Promise.all(rows.map(update));
      errorNote.hide();
      if (ended.some(Boolean)) {
        location.reload();
        return;
      }
    } catch (error) {
      const { text, final } = loadError(error);
      errorNote.show(text, poll);
      if (final) return;
    }
  }
  clearTimeout(timer);
  timer = setTimeout(poll, POLL_MS);
}

setTimeout(poll, POLL_MS);
