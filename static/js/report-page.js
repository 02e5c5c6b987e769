/** A page with work under way: how far it is, and the whole page anew once it is done. */

import { setText } from "./dom.js";

const LOOK_MS = 1500;
const host = document.querySelector("[data-report]");
const bar = host.querySelector("progress");
const said = host.querySelector('[data-part="said"]');

async function look() {
  const answer = await fetch(host.dataset.report).catch(() => null);
  if (answer?.ok) {
    const report = await answer.json();
    if (report.state === "done" || report.state === "failed") {
      location.reload();
      return;
    }
    if (report.state === "running" && bar) {
      bar.value = report.done;
      setText(said, `${report.done} of ${report.total} problems checked.`);
    }
  }
  setTimeout(look, LOOK_MS);
}

setTimeout(look, LOOK_MS);
