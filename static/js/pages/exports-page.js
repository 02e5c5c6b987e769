/** The list of exports: while one is in progress, the page fetches itself again to update it. */

import { ErrorNote, fetchOk } from "../lib/error-note.js";
import { updateAges } from "./frame.js";
import { loadError } from "../lib/load-error.js";

const EVERY_MS = 1_500;
const LIST = '[data-part="list"]';
const list = () => document.querySelector(LIST);
const errorNote = new ErrorNote(list, "This list may be out of date.");
let isFinal = false; // an automatic retry would not help

async function refresh() {
  const shown = list();
  if (document.hidden || isFinal || !("pending" in shown.dataset) || shown.contains(document.activeElement)) return;
  try {
    const response = await fetchOk(location.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    errorNote.hide();
    shown.replaceWith(page.querySelector(LIST));
    updateAges();
  } catch (error) {
    const { text, final } = loadError(error);
    isFinal = final;
    errorNote.show(text, () => {
      isFinal = false;
      refresh();
    });
  }
}

setInterval(refresh, EVERY_MS);
