/**
 * The form of a page that uploads: its buttons, its progress and its error.
 */

import { setText } from "./dom.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);

/**
 * Calls `send(signal)` when the form is submitted; it leaves the page when it has succeeded. The
 * part `stop` aborts the signal; a failure is shown, and a new attempt resumes what was uploaded.
 */
export function onUpload(form, send) {
  let sending = null;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    sending = new AbortController();
    show(true);
    try {
      await send(sending.signal);
    } catch (error) {
      const stopped = sending.signal.aborted;
      const again = part("send").textContent.trim();
      show(false, stopped ? `Upload paused. Choose ${again} to resume it.` : error.message);
    }
  });
  part("stop").addEventListener("click", () => sending?.abort());
}

/** Shows how far it is. */
export function showProgress(text) {
  setText(part("progress"), text);
}

function show(busy, error = "") {
  part("send").disabled = busy;
  part("stop").hidden = !busy;
  part("error").hidden = !error;
  setText(part("error"), error);
  if (!busy) showProgress("");
}
