/** The list of exports: while one is in progress, the page fetches itself again to update it. */

import { FaultNote, fetched } from "../lib/fault-note.js";
import { tellAges } from "./frame.js";
import { loadFault } from "../lib/load-fault.js";

const EVERY_MS = 1_500;
const LIST = '[data-part="list"]';
const list = () => document.querySelector(LIST);
const fault = new FaultNote(list, "This list may be out of date.");
let refused = false; // an automatic retry would not help

async function refresh() {
  const shown = list();
  if (document.hidden || refused || !("pending" in shown.dataset) || shown.contains(document.activeElement)) return;
  try {
    const reply = await fetched(location.href);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    fault.hide();
    shown.replaceWith(page.querySelector(LIST));
    tellAges();
  } catch (error) {
    const { text, final } = loadFault(error);
    refused = final;
    fault.show(text, () => {
      refused = false;
      refresh();
    });
  }
}

setInterval(refresh, EVERY_MS);
