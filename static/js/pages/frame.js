/** Parts of every page: menus that close, ages that are updated, and the status of the server. */

import { ago } from "../lib/format.js";

const HEALTH_MS = 30_000;

/** Shows for every time on the page how long ago it was. */
export function updateAges() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    time.textContent = ago(Date.now() - Date.parse(time.dateTime));
    time.title = new Date(time.dateTime).toLocaleString();
  }
}

async function updateHealth(healthText) {
  if (document.hidden) return;
  let isHealthy = false;
  try {
    isHealthy = (await fetch(healthText.dataset.health)).ok;
  } catch {
    // Not reachable: shown below, like an error status.
  }
  healthText.dataset.kind = isHealthy ? "live" : "stale";
  healthText.textContent = isHealthy ? "All systems operational" : "Server not reachable";
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

updateAges();
setInterval(updateAges, 30_000);
const healthText = document.querySelector("[data-health]");
if (healthText) {
  updateHealth(healthText);
  setInterval(() => updateHealth(healthText), HEALTH_MS);
}
