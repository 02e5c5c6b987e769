/** A page with work in progress: shows its progress, and reloads the whole page once it is done. */

import { setText } from "../lib/dom.js";
import { FaultNote, fetched } from "../lib/fault-note.js";
import { loadFault } from "../lib/load-fault.js";

const LOOK_MS = 1500;
const host = document.querySelector("[data-report]");
const bar = host.querySelector("progress");
const said = host.querySelector('[data-part="said"]');
const fault = new FaultNote(() => host, "Progress could not be loaded.");

async function look() {
  try {
    const report = await (await fetched(host.dataset.report)).json();
    fault.hide();
    if (report.state === "done" || report.state === "failed") {
      location.reload();
      return;
    }
    if (report.state === "running" && bar) {
      bar.value = report.done;
      setText(said, `${report.done} of ${report.total} problems checked.`);
    }
  } catch (error) {
    const { text, final } = loadFault(error);
    fault.show(text, look);
    if (final) return;
  }
  setTimeout(look, LOOK_MS);
}

setTimeout(look, LOOK_MS);
