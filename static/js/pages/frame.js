/** Parts of every page: menus that close, ages that are updated, and the status of the server. */

import { ago } from "../lib/format.js";

const HEALTH_MS = 30_000;

/** Shows for every time on the page how long ago it was. */
export function tellAges() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    time.textContent = ago(Date.now() - Date.parse(time.dateTime));
    time.title = new Date(time.dateTime).toLocaleString();
  }
}

async function tellHealth(mark) {
  if (document.hidden) return;
  let well = false;
  try {
    well = (await fetch(mark.dataset.health)).ok;
  } catch {
    // Not reachable: shown below, like an error status.
  }
  mark.dataset.kind = well ? "live" : "stale";
  mark.textContent = well ? "All systems operational" : "Server not reachable";
}

document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
});
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

tellAges();
setInterval(tellAges, 30_000);
const mark = document.querySelector("[data-health]");
if (mark) {
  tellHealth(mark);
  setInterval(() => tellHealth(mark), HEALTH_MS);
}
